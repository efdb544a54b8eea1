#include "weights/load_language_model.h"

#include <fmt/format.h>

#include "core/error.h"
#include "weights/load_weights.h"

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

}  // namespace tessera
