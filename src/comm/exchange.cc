#include "comm/exchange.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>

namespace tessera {

std::vector<std::vector<double>> gather_numbers(World& world, const std::vector<double>& own) {
  if (world.size() == 1 || own.empty()) {
    return std::vector<std::vector<double>>(static_cast<std::size_t>(world.size()), own);
  }
  // Groups cannot carry doubles: their bits travel as integers.
  const at::Tensor input = at::tensor(own, at::kDouble).view(at::kLong).to(world.device());
  const at::Tensor output = at::empty({world.size() * input.numel()}, input.options());
  world.all().all_gather(output, input, "metrics")->wait();
  const at::Tensor host = output.cpu().view(at::kDouble);
  const double* numbers = host.const_data_ptr<double>();
  std::vector<std::vector<double>> all;
  for (int rank = 0; rank < world.size(); ++rank, numbers += own.size())
    all.emplace_back(numbers, numbers + own.size());
  return all;
}

std::vector<double> sum_over_ranks(World& world, const std::vector<double>& own) {
  std::vector<double> sums(own.size(), 0.0);
  for (const std::vector<double>& of_rank : gather_numbers(world, own)) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += of_rank[i];
  }
  return sums;
}

std::vector<std::string> gather_texts(World& world, const std::string& own) {
  if (world.size() == 1) return {own};
  constexpr std::size_t kSize = 256;  // including the final 0
  const at::Tensor text = at::zeros({kSize}, at::kByte);
  std::memcpy(text.data_ptr(), own.data(), std::min(own.size(), kSize - 1));
  const at::Tensor output = at::empty({world.size() * std::int64_t{kSize}}, text.options().device(world.device()));
  world.all().all_gather(output, text.to(world.device()), "names")->wait();
  const at::Tensor host = output.cpu();
  std::vector<std::string> all;
  const char* bytes = static_cast<const char*>(host.const_data_ptr());
  for (int rank = 0; rank < world.size(); ++rank, bytes += kSize) all.emplace_back(bytes);
  return all;
}

}  // namespace tessera
