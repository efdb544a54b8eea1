#include "comm/exchange.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>

#include "comm/failure.h"
#include "core/error.h"

namespace tessera {
namespace {

// Groups carry no doubles: their bits travel as whole numbers.
at::Tensor bits_of(const std::vector<double>& numbers, at::Device device) {
  return at::tensor(numbers, at::kDouble).view(at::kLong).to(device);
}

// The first `size` bytes of every rank's text, with zeros behind a shorter one.
at::Tensor gather_bytes(World& world, const std::string& own, std::int64_t size, const char* what) {
  const at::Tensor text = at::zeros({size}, at::kByte);
  std::memcpy(text.mutable_data_ptr(), own.data(), std::min(own.size(), static_cast<std::size_t>(size)));
  const at::Tensor output = at::empty({world.size() * size}, text.options().device(world.device()));
  world.all().all_gather(output, text.to(world.device()), what)->wait();
  return output.cpu();
}

struct End {
  ExitStatus status = ExitStatus::kOk;
  std::string message;
};

End end_of(const std::function<void()>& work) {
  try {
    work();
    return {};
  } catch (const std::exception& error) {
    return {static_cast<ExitStatus>(status_of(error)), message_of(error)};
  }
}

}  // namespace

std::vector<std::vector<double>> gather_numbers(World& world, const std::vector<double>& own) {
  if (world.size() == 1 || own.empty()) {
    return std::vector<std::vector<double>>(static_cast<std::size_t>(world.size()), own);
  }
  const at::Tensor input = bits_of(own, world.device());
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
  constexpr std::int64_t kSize = 256;  // with a 0 behind it
  const at::Tensor host = gather_bytes(world, own.substr(0, kSize - 1), kSize, "names");
  std::vector<std::string> all;
  const char* bytes = static_cast<const char*>(host.const_data_ptr());
  for (int rank = 0; rank < world.size(); ++rank, bytes += kSize) all.emplace_back(bytes);
  return all;
}

std::vector<double> numbers_of_first_rank(World& world, const std::vector<double>& own, const char* what) {
  if (world.size() == 1 || own.empty()) return own;
  const at::Tensor bits = bits_of(own, world.device());
  world.all().broadcast(bits, 0, what)->wait();
  const at::Tensor host = bits.cpu().view(at::kDouble);
  return {host.const_data_ptr<double>(), host.const_data_ptr<double>() + host.numel()};
}

std::string text_of_first_rank(World& world, const std::string& own, const char* what) {
  if (world.size() == 1) return own;
  const std::vector<double> size = numbers_of_first_rank(world, {static_cast<double>(own.size())}, what);
  at::Tensor text = at::empty({static_cast<std::int64_t>(size.front())}, at::kByte);
  if (world.rank() == 0) std::memcpy(text.mutable_data_ptr(), own.data(), own.size());
  text = text.to(world.device());
  if (text.numel() > 0) world.all().broadcast(text, 0, what)->wait();
  const at::Tensor host = text.cpu();
  return {static_cast<const char*>(host.const_data_ptr()), static_cast<std::size_t>(host.numel())};
}

std::vector<std::string> gather_long_texts(World& world, const std::string& own, const char* what) {
  if (world.size() == 1) return {own};
  std::vector<std::int64_t> sizes;
  for (const std::vector<double>& size : gather_numbers(world, {static_cast<double>(own.size())})) {
    sizes.push_back(static_cast<std::int64_t>(size.front()));
  }
  const std::int64_t longest = *std::ranges::max_element(sizes);
  if (longest == 0) return std::vector<std::string>(sizes.size());
  const at::Tensor host = gather_bytes(world, own, longest, what);
  std::vector<std::string> all;
  const char* bytes = static_cast<const char*>(host.const_data_ptr());
  for (const std::int64_t size : sizes) {
    all.emplace_back(bytes, static_cast<std::size_t>(size));
    bytes += longest;
  }
  return all;
}

void on_every_rank(World& world, const std::function<void()>& work) {
  const End end = end_of(work);
  const std::vector<std::vector<double>> statuses = gather_numbers(world, {static_cast<double>(end.status)});
  const auto failed = std::ranges::find_if(statuses, [](const std::vector<double>& status) {
    return static_cast<ExitStatus>(static_cast<int>(status.front())) != ExitStatus::kOk;
  });
  if (failed == statuses.end()) return;
  const auto rank = static_cast<std::size_t>(failed - statuses.begin());
  const std::string message = gather_long_texts(world, end.message, "a rank's error").at(rank);
  throw Error(world.size() == 1 ? message : "rank " + std::to_string(rank) + ": " + message,
              static_cast<ExitStatus>(static_cast<int>(failed->front())));
}

void on_first_rank(World& world, const std::function<void()>& work) {
  constexpr const char* kWhat = "end of rank 0's work";
  End end;
  if (world.rank() == 0) end = end_of(work);
  const double status = numbers_of_first_rank(world, {static_cast<double>(end.status)}, kWhat).front();
  end.status = static_cast<ExitStatus>(static_cast<int>(status));
  if (end.status == ExitStatus::kOk) return;
  throw Error(text_of_first_rank(world, end.message, kWhat), end.status);
}

}  // namespace tessera
