#include "parallel/model_likeness.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "core/error.h"

namespace tessera {
namespace {

std::vector<std::string> lines_of(const std::vector<std::vector<UnitParameter>>& parameters_of_unit) {
  std::vector<std::string> lines;
  for (std::size_t unit = 0; unit < parameters_of_unit.size(); ++unit) {
    for (const UnitParameter& p : parameters_of_unit[unit]) {
      lines.push_back(fmt::format("{} of shape [{}]{}, in unit {}", p.name, fmt::join(p.parameter.sizes(), ", "),
                                  p.parameter.requires_grad() ? "" : " (frozen)", unit));
    }
  }
  return lines;
}

std::string broadcast_text(World& world, const std::string& text) {
  at::Tensor length = at::tensor({static_cast<std::int64_t>(text.size())}, at::kLong).to(world.device());
  world.all().broadcast(length, 0, "model structure")->wait();
  at::Tensor bytes = at::empty({length.item<std::int64_t>()}, at::dtype(at::kByte).device(world.device()));
  if (world.rank() == 0) {
    at::Tensor own = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
    std::memcpy(own.data_ptr(), text.data(), text.size());
    bytes.copy_(own);
  }
  world.all().broadcast(bytes, 0, "model structure")->wait();
  const at::Tensor host = bytes.cpu();
  return {static_cast<const char*>(host.const_data_ptr()), static_cast<std::size_t>(host.numel())};
}

}  // namespace

void check_alike(World& world, const std::vector<std::vector<UnitParameter>>& parameters_of_unit) {
  if (world.size() == 1) return;
  const std::vector<std::string> own = lines_of(parameters_of_unit);
  const std::string theirs = broadcast_text(world, fmt::format("{}\n", fmt::join(own, "\n")));
  std::size_t begin = 0;
  for (std::size_t i = 0; begin < theirs.size(); ++i) {
    const std::size_t end = theirs.find('\n', begin);
    const std::string line = theirs.substr(begin, end - begin);
    begin = end + 1;
    if (i < own.size() && line == own[i]) continue;
    throw Error(fmt::format("rank {} does not hold the model that rank 0 holds: parameter {} is {} there and {} here",
                            world.rank(), i, line.empty() ? "missing" : line, i < own.size() ? own[i] : "missing"));
  }
  const auto num_lines = static_cast<std::size_t>(std::count(theirs.begin(), theirs.end(), '\n'));
  if (own.size() > num_lines) {
    throw Error(
        fmt::format("rank {} does not hold the model that rank 0 holds: it has {} parameters more, the first {}",
                    world.rank(), own.size() - num_lines, own[num_lines]));
  }
}

}  // namespace tessera
