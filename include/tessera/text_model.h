// Tessera's own text models, BLOOM and a GPT-like one, for programs of one's own.
//
//   auto model = tessera::make_text_model(R"({"model_type": "bloom", "hidden_size": 64, ...})", /*seed=*/1);
//   tessera::Sharded sharded(world, *model, {.strategy = "zero3"});
//   tessera::PackedBatch batch = tessera::next_token_batch(sequences, world.device());
//   at::Tensor sum = sharded.forward([&] { return model->loss_sum(batch, sharded); });
//
// The blocks are the units. Losses are sums, since ranks hold different numbers of tokens: give Optimizer::step the
// number of counted tokens over all ranks as its divisor. One thread at a time.
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
  // The cross-entropy added up over the batch's counted targets: a float32 number with gradient.
  virtual at::Tensor loss_sum(const PackedBatch& batch, UnitRunner& runner) = 0;
  // Dropout's masks are a function of it: set it anew for each pass, from step and rank.
  virtual void set_dropout_seed(std::uint64_t seed) = 0;
  virtual std::string config_json() const = 0;  // what make_text_model takes
};

// From the text of a config.json ("model_type": "bloom" or "tessera-gpt"), with fresh weights that depend on the seed
// alone. Throws where a field is wrong.
std::shared_ptr<TextModel> make_text_model(const std::string& config_json, std::uint64_t seed);

// A Hugging Face model folder: config.json and weights.
std::shared_ptr<TextModel> load_text_model(const std::filesystem::path& folder);

// config.json and model.safetensors, as transformers loads them; the folder is made where it is not there. Collective,
// as save_weights (tessera/checkpoint.h).
void save_text_model(Sharded& sharded, const TextModel& model, const std::filesystem::path& folder);

// Sequences of token ids, laid end to end; each token but a sequence's last predicts the next. Throws where a sequence
// is empty.
PackedBatch next_token_batch(const std::vector<std::vector<std::int64_t>>& sequences, at::Device device);

}  // namespace tessera
