#include "model/initialise.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

namespace tessera {
namespace {

std::uint64_t seed_of(const std::string& name, std::uint64_t seed) {
  std::uint64_t state = mix_seed(seed, name.size());
  for (const char letter : name) state = mix_seed(state, static_cast<unsigned char>(letter));
  return state;
}

}  // namespace

void initialise_parameter(at::Tensor& parameter, const std::string& name, double initializer_range,
                          std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  if (name.ends_with("bias")) {
    parameter.zero_();
  } else if (parameter.dim() == 1) {  // the weight of a norm
    parameter.fill_(1);
  } else if (parameter.is_cpu() && parameter.scalar_type() == at::kFloat && parameter.is_contiguous()) {
    parameter.normal_(0, initializer_range, at::detail::createCPUGenerator(seed_of(name, seed)));
  } else {
    at::Tensor drawn = at::empty(parameter.sizes(), at::kFloat);
    parameter.copy_(drawn.normal_(0, initializer_range, at::detail::createCPUGenerator(seed_of(name, seed))));
  }
}

void initialise(LanguageModel& model, std::uint64_t seed) {
  for (auto& item : model.named_parameters()) {
    initialise_parameter(item.value(), item.key(), model.initializer_range(), seed);
  }
}

}  // namespace tessera
