#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <map>
#include <string>

#include "core/error.h"
#include "core/text.h"
#include "kernels/check.h"
#include "kernels/cuda_kernels.h"
#include "kernels/optimizers/optimizer_slice.h"
#include "kernels/parallel.h"

namespace tessera {

extern const OptimizerKind kAdamW, kAdam, kSgd, kLion;

const std::vector<const OptimizerKind*>& optimizers() {
  static const std::vector<const OptimizerKind*> all = {&kAdamW, &kAdam, &kSgd, &kLion};
  return all;
}

const OptimizerKind& optimizer_of(std::string_view word) {
  for (const OptimizerKind* each : optimizers()) {
    if (each->name == word || std::find(each->words.begin(), each->words.end(), word) != each->words.end()) {
      return *each;
    }
  }
  throw UsageError(fmt::format("optimizer '{}' is not known{}; optimizers: {}", printable(word, 40),
                               did_you_mean(word, optimizer_words()), join(optimizer_words(), ", ")));
}

std::vector<std::string> optimizer_words() {
  std::vector<std::string> words;
  for (const OptimizerKind* each : optimizers()) words.insert(words.end(), each->words.begin(), each->words.end());
  return words;
}

void check_number(const char* name, double value, bool is_right, const char* allowed) {
  if (is_right && std::isfinite(value)) return;
  throw UsageError(fmt::format("optimizer: {} is {}: expected {}", name, value, allowed));
}

}  // namespace tessera

namespace tessera::kernels {
namespace {

std::map<std::string, FlatUpdateFunction>& cuda_updates() {
  static std::map<std::string, FlatUpdateFunction> updates;
  return updates;
}

// `buffer` is [n] like params, contiguous, on its device, of one of `types`.
void check_flat(const at::Tensor& params, const at::Tensor& buffer, std::initializer_list<at::ScalarType> types,
                const char* kernel, const char* name) {
  bool right_type = false;
  std::string allowed;
  for (const auto type : types) {
    right_type = right_type || (buffer.defined() && buffer.scalar_type() == type);
    allowed += fmt::format("{}{}", allowed.empty() ? "" : " or ", c10::toString(type));
  }
  check(params.defined() && params.dim() == 1, kernel, "params as one flat buffer of one dimension");
  check(buffer.defined() && right_type && buffer.sizes() == params.sizes() && buffer.is_contiguous() &&
            buffer.device() == params.device(),
        kernel,
        fmt::format("{} as a contiguous [{}] {} on {} but got {} on {}", name, params.numel(), allowed,
                    params.device().str(), buffer.defined() ? shape_text(buffer) : "none",
                    buffer.defined() ? buffer.device().str() : "no device"));
}

NumberType type_of(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.scalar_type() == at::kFloat) return NumberType::kFloat32;
  return tensor.scalar_type() == at::kBFloat16 ? NumberType::kBFloat16 : NumberType::kFloat16;
}

}  // namespace

CudaUpdate::CudaUpdate(const char* optimizer, FlatUpdateFunction update) {
  cuda_updates()[optimizer] = update;
}

void run_update(const char* optimizer, const OptimizerSlice& slice, std::size_t num_states, std::int64_t step,
                PartUpdateFunction on_cpu, const void* constants) {
  const bool is_split = slice.remainder.defined();
  const at::Tensor& params = is_split ? slice.copy : slice.params;  // what the others must be like
  if (is_split) {
    check_flat(params, params, {at::kBFloat16}, optimizer, "copy");
    check_flat(params, slice.remainder, {at::kShort}, optimizer, "remainder");
    check(!slice.params.defined(), optimizer, "a remainder instead of params, not beside them");
  } else {
    check_flat(params, params, {at::kFloat}, optimizer, "params");
    if (slice.copy.defined()) check_flat(params, slice.copy, {at::kBFloat16, at::kHalf}, optimizer, "copy");
  }
  check_flat(params, slice.grads, {at::kFloat, at::kBFloat16, at::kHalf}, optimizer, "grads");
  check(slice.states.size() >= num_states && num_states <= kMostStates, optimizer,
        fmt::format("{} states but got {}", num_states, slice.states.size()));
  for (std::size_t i = 0; i < num_states; ++i) check_flat(params, slice.states[i], {at::kFloat}, optimizer, "a state");
  check(step >= 1, optimizer, fmt::format("a step from 1 on but got {}", step));
  if (params.numel() == 0) return;
  FlatUpdate flat;
  if (is_split) {
    flat.remainder = slice.remainder.mutable_data_ptr<std::int16_t>();
  } else {
    flat.params = params.mutable_data_ptr<float>();
  }
  flat.grads = slice.grads.const_data_ptr();
  flat.grad_type = type_of(slice.grads);
  flat.copy = slice.copy.defined() ? slice.copy.mutable_data_ptr() : nullptr;
  flat.copy_type = type_of(slice.copy);
  flat.numel = params.numel();
  for (std::size_t i = 0; i < num_states; ++i) flat.states[i] = slice.states[i].mutable_data_ptr<float>();
  if (!params.is_cuda()) {
    // Numbers that a thread takes at once: starting a thread costs as much as some thousand, and memory is read fastest
    // in long runs.
    constexpr std::int64_t kPart = 65536;
    return parallel_parts(0, flat.numel, kPart,
                          [&](std::int64_t begin, std::int64_t end) { on_cpu(flat, constants, begin, end); });
  }
  const CudaKernels& kernels = cuda_kernels();  // says what is missing where the flavour is not loaded
  kernels.flat_update(params, flat, cuda_updates().at(optimizer), constants);
}

}  // namespace tessera::kernels
