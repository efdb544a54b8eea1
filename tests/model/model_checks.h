// The text models against their originals, on any device.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/language_model.h"
#include "support/tensor_file.h"

namespace tessera {

struct ModelCase {
  std::string name;                       // the file's name in tests/data/models
  std::vector<std::string> dropout_keys;  // of its config
  double tolerance = 1e-4;                // of logits in float32
};
// BLOOM and the workshops' GPT, and the families of today's decoders with what varies within them.
const std::vector<ModelCase>& model_cases();
std::vector<ModelCase> decoder_cases();
void PrintTo(const ModelCase& model, std::ostream* out);

TensorFile model_reference(const std::string& name);
// The file's model with the file's weights.
std::shared_ptr<LanguageModel> model_of(const TensorFile& file, at::Device device, at::ScalarType type = at::kFloat);

void check_logits(const ModelCase& model, at::Device device);
void check_loss_and_gradients(const ModelCase& model, at::Device device);
// bf16: about as far from the float32 reference as transformers' own bf16, or nearer.
void check_bf16_logits(at::Device device);
// bf16: each gradient is about as far from the float32 reference as the original's own bf16 gradient.
struct Bf16Errors {
  double ours = 0, theirs = 0;  // sums over the gradients, relative to their sizes
};
Bf16Errors check_bf16_gradients(const ModelCase& model, at::Device device);
// The same for all models, which together have a tighter limit.
void check_all_bf16_gradients(at::Device device);
void check_greedy_generation(at::Device device);
// 32 tokens of each row, alone, with the cache.
void check_greedy_rows(const ModelCase& model, at::Device device);
void check_step_logits(const ModelCase& model, at::Device device);
void check_dropout_and_checkpointing(const ModelCase& model, at::Device device, at::ScalarType type);
// What a forward pass keeps with and without checkpointing differs by the units' calculated activations. `live_bytes`
// returns how many bytes of tensors are alive on the device.
void check_activation_memory(at::Device device, at::ScalarType type, const std::function<std::int64_t()>& live_bytes);

}  // namespace tessera
