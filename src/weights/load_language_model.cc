#include "weights/load_language_model.h"

#include <fmt/format.h>

#include "weights/load_weights.h"
#include "comm/gpu_support.h"
#include "core/error.h"
#include "core/text.h"

namespace tessera {
namespace {

// Uninitialised. If libtorch runs out of memory, the error says how large the config's model is.
std::shared_ptr<LanguageModel> make_model(const ModelFolder& folder, const at::TensorOptions& options) {
  const std::string origin = (folder.path() / "config.json").string();
  try {
    return make_language_model(folder.config(), origin, options);
  } catch (const c10::Error& error) {
    double numel = 0;
    const auto sizes_alone = make_language_model(folder.config(), origin, at::device(at::kMeta));
    for (const at::Tensor& parameter : sizes_alone->parameters()) numel += static_cast<double>(parameter.numel());
    throw Error(fmt::format("{}: a model of {:.0f} parameters, {:.1f} GiB, does not fit into memory: {}", origin, numel,
                            numel * static_cast<double>(options.dtype().itemsize()) / (1 << 30),
                            error.what_without_backtrace()));
  }
}

}  // namespace

void check_is_language_model(const ModelFolder& folder) {
  make_language_model(folder.config(), (folder.path() / "config.json").string(), at::device(at::kMeta));
}

std::shared_ptr<LanguageModel> load_language_model(const ModelFolder& folder, const at::TensorOptions& options) {
  auto model = make_model(folder, options);
  LoadOptions load;
  load.base_model_prefix = model->base_prefix();
  load.ties = model->tied_names();
  load_weights(*model, Weights::open(folder.path()), load);
  model->eval();
  return model;
}

at::Device choose_device(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  const GpuSupport* gpus = gpu_support();
  if (gpus == nullptr || gpus->num_gpus() == 0) {
    if (name == "auto") return at::kCPU;
    throw UsageError(fmt::format("--device cuda: no GPU is available ({}); use --device cpu", no_gpu_reason()));
  }
  gpus->set_device(0);
  return {at::kCUDA, 0};
}

const std::vector<std::string>& compute_type_names() {
  static const std::vector<std::string> names = {"float32", "bfloat16", "float16", "fp32", "bf16", "fp16"};
  return names;
}

at::ScalarType type_of_name(const std::string& name) {
  if (name == "float32" || name == "fp32") return at::kFloat;
  if (name == "bfloat16" || name == "bf16") return at::kBFloat16;
  if (name == "float16" || name == "fp16") return at::kHalf;
  throw UsageError(fmt::format("type '{}': expected one of {}", printable(name), join(compute_type_names(), ", ")));
}

}  // namespace tessera
