// Loads a text model from its folder: config.json, then its weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "weights/model_folder.h"
#include "model/language_model.h"

namespace tessera {

// Throws UsageError if the folder's config.json is not a text model that Tessera knows.
void check_is_language_model(const ModelFolder& folder);

// In eval mode, with the device and type of `options`. Throws UsageError naming the file and the tensor or field, Error
// if it does not fit into memory.
std::shared_ptr<LanguageModel> load_language_model(const ModelFolder& folder, const at::TensorOptions& options);

// "cpu", "cuda", or "auto": the GPU if there is one. Throws UsageError if "cuda" is requested and there is none.
at::Device choose_device(const std::string& name);

// "float32", "bfloat16", "float16" and their short names; the setting's choices are these.
at::ScalarType type_of_name(const std::string& name);
const std::vector<std::string>& compute_type_names();

}  // namespace tessera
