#include "library/agreement.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <cstring>
#include <string>

#include "core/error.h"

namespace tessera {
namespace {

constexpr const char* kUnit = "end of rank 0's work";

struct End {
  bool failed = false;
  std::int64_t status = 0;
  std::string message;
};

End end_of(const std::function<void()>& work) {
  try {
    work();
    return {};
  } catch (const Error& error) {
    return {true, static_cast<std::int64_t>(error.status()), error.what()};
  } catch (const c10::Error& error) {
    return {true, static_cast<std::int64_t>(ExitStatus::kFailure), error.what_without_backtrace()};
  } catch (const std::exception& error) {
    return {true, static_cast<std::int64_t>(ExitStatus::kFailure), error.what()};
  }
}

End tell_all(World& world, End end) {
  const auto length = static_cast<std::int64_t>(end.message.size());
  const at::Tensor head = at::tensor({std::int64_t{end.failed}, end.status, length}, at::kLong).to(world.device());
  world.all().broadcast(head, 0, kUnit)->wait();
  const at::Tensor told = head.cpu();
  const std::int64_t* numbers = told.const_data_ptr<std::int64_t>();
  if (numbers[0] == 0) return {};
  at::Tensor text = at::empty({numbers[2]}, at::kByte);
  if (world.rank() == 0) std::memcpy(text.mutable_data_ptr(), end.message.data(), end.message.size());
  text = text.to(world.device());
  if (text.numel() > 0) world.all().broadcast(text, 0, kUnit)->wait();
  const at::Tensor host = text.cpu();
  return {true, numbers[1], {static_cast<const char*>(host.const_data_ptr()), static_cast<std::size_t>(host.numel())}};
}

}  // namespace

void on_first_rank(World& world, const std::function<void()>& work) {
  End end;
  if (world.rank() == 0) end = end_of(work);
  if (world.size() > 1) end = tell_all(world, std::move(end));
  if (end.failed) throw Error(end.message, static_cast<ExitStatus>(end.status));
}

}  // namespace tessera
