// Loads the weights of a file into a model, by name.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weights/model_folder.h"
#include "weights/weights.h"

namespace tessera {

class LanguageModel;

struct LoadOptions {
  // "transformer": names match with and without it, as in transformers: a file of the base model fills the model with
  // its head, and vice versa.
  std::string base_model_prefix{};
  // (alias, name): the file may hold `alias` though the model has only `name`, its tied weight; if the file holds only
  // `alias`, it fills `name`; if it holds both, their values are the same.
  std::vector<std::pair<std::string, std::string>> ties{};
  // "attn.bias": the file may hold tensors whose names are this or end in ".attn.bias", which the model does not have.
  std::vector<std::string> ignored{};
};

// How files of this model are read.
LoadOptions load_options_of(const LanguageModel& model);

// Fills every parameter and buffer of `module`, converting types, on any device; a tensor registered under several
// names needs only one of them in the file. Memory beyond the model: at most the largest tensor once. A batch norm's
// num_batches_tracked may always be missing: files from before torch 1.0 (torchvision's) have none. Nothing is filled
// unless everything fits: UsageError names every tensor that is missing, left over, of a different shape, or of whole
// numbers where the model has floating-point ones. Nor may a value be NaN, or a parameter's Inf: UsageError names the
// damaged tensors, after all were read.
void load_weights(torch::nn::Module& module, const Weights& weights, const LoadOptions& options = {});

// The same tensor by tensor, for a model that no rank ever holds whole: the engine's source of initial values.
class WeightSource {
 public:
  // Every name of `module`, which may be on the meta device, must be found in the file, or UsageError as above. The
  // weights must outlive the source.
  WeightSource(torch::nn::Module& module, const Weights& weights, const LoadOptions& options = {});

  // Copies the tensor that the module knows by that name into one of the same shape, of any type and on any device.
  // Throws UsageError if its values are damaged, as above.
  void fill(const std::string& name, const at::Tensor& values) const;

 private:
  const Weights& weights_;
  struct Source {
    const WeightEntry* entry;  // null: the file has none, and need not
    bool is_buffer;
  };
  std::unordered_map<std::string, Source> source_of_;
};

// Throws UsageError where the folder's config.json is of no text model that Tessera knows.
void check_is_language_model(const ModelFolder& folder);

// A text model from its folder: config.json, then the weights. In eval mode, in the device and type of `options`.
// Throws UsageError naming the file and the tensor or field, Error where there is not the memory for it.
std::shared_ptr<LanguageModel> load_language_model(const ModelFolder& folder, const at::TensorOptions& options);

}  // namespace tessera
