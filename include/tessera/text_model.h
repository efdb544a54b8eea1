// Tessera's own text models, for use in your programs: every family that docs/models.md lists.
//
//   auto model = tessera::make_text_model(R"({"model_type": "bloom", "hidden_size": 64, ...})", /*seed=*/1);
//   tessera::Sharded sharded(world, *model, {.spread = {.strategy = "zero3"}});
//   tessera::PackedBatch batch = tessera::next_token_batch(sequences, world.device());
//   at::Tensor sum = sharded.forward([&] { return model->loss_sum(batch, sharded); });
//
// The blocks are the units. Losses are sums, since ranks hold different numbers of tokens: pass the number of counted
// tokens over all ranks to Optimizer::step as its divisor. One thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tessera/packed_batch.h"
#include "tessera/unit.h"

namespace tessera {

class Sharded;

class TextModel : public UnitModel {
 public:
  // The cross-entropy summed over the batch's counted targets: a float32 number with gradient.
  virtual at::Tensor loss_sum(const PackedBatch& batch, UnitRunner& runner) = 0;
  // Determines dropout's masks: set it before each pass, from step and rank.
  virtual void set_dropout_seed(std::uint64_t seed) = 0;
  virtual std::string config_json() const = 0;  // what make_text_model takes
};

// From the text of a config.json (its "model_type" names the family), with fresh weights that depend only on the
// seed. Throws if a field is wrong.
std::shared_ptr<TextModel> make_text_model(const std::string& config_json, std::uint64_t seed);

// From a Hugging Face model folder: config.json and weights.
std::shared_ptr<TextModel> load_text_model(const std::filesystem::path& folder);

// Writes config.json and model.safetensors, which transformers loads; creates the folder if necessary. Collective, like
// save_weights (tessera/checkpoint.h).
void save_text_model(Sharded& sharded, const TextModel& model, const std::filesystem::path& folder);

// Lays sequences of token ids end to end; each token but a sequence's last predicts the next. Throws if a sequence is
// empty.
PackedBatch next_token_batch(const std::vector<std::vector<std::int64_t>>& sequences, at::Device device);

}  // namespace tessera
