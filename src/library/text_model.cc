#include "tessera/text_model.h"

#include <fmt/format.h>

#include "comm/exchange.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "library/shard_impl.h"
#include "model/generation.h"
#include "model/language_model.h"
#include "model/parameters.h"
#include "tessera/checkpoint.h"
#include "weights/load_weights.h"
#include "weights/model_folder.h"

namespace tessera {

std::shared_ptr<TextModel> make_text_model(const std::string& config_json, std::uint64_t seed) {
  auto model = make_language_model(parse_json(config_json, "the config"), "the config");
  initialise(*model, seed);
  return model;
}

std::shared_ptr<TextModel> load_text_model(const std::filesystem::path& folder) {
  const ModelFolder opened = ModelFolder::open(folder);
  auto model = make_language_model(opened.config(), (folder / "config.json").string());
  load_weights(*model, Weights::open(folder), load_options_of(*model));
  return model;
}

void save_text_model(Sharded& sharded, const TextModel& model, const std::filesystem::path& folder) {
  if (&sharded.impl().model != &model) {
    throw UsageError("save_text_model: pass the model that was sharded, not another one");
  }
  World& world = sharded.world();
  on_first_rank(world, [&] {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw Error(fmt::format("cannot create the folder {}: {}", folder.string(), error.message()));
  });
  save_weights(sharded, folder / "model.safetensors");
  on_first_rank(world, [&] {
    const Json config = with_weight_type(parse_json(model.config_json(), "the model's config"), "float32");
    write_file_atomically(folder / "config.json", config.dump(2) + "\n");
  });
}

PackedBatch next_token_batch(const std::vector<std::vector<std::int64_t>>& sequences, at::Device device) {
  PackedBatch batch = pack_sequences(sequences, device);
  const std::int64_t num_tokens = batch.input_ids.numel();
  batch.targets.slice(0, 0, -1).copy_(batch.input_ids.slice(0, 1));
  batch.targets.index_fill_(0, batch.cu_seqlens.slice(0, 1).to(at::kLong) - 1, kIgnoredTarget);
  batch.num_counted = num_tokens - static_cast<std::int64_t>(sequences.size());
  return batch;
}

}  // namespace tessera
