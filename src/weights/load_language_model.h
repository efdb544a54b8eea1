// A text model out of its folder: config.json, then the weights into it.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "model/language_model.h"
#include "weights/model_folder.h"

namespace tessera {

// Throws UsageError where the folder's config.json is of no text model that Tessera knows.
void check_is_language_model(const ModelFolder& folder);

// In eval mode, in the device and type of `options`. Throws UsageError naming the file and the tensor or field, Error
// where there is not the memory for it.
std::shared_ptr<LanguageModel> load_language_model(const ModelFolder& folder, const at::TensorOptions& options);

}  // namespace tessera
