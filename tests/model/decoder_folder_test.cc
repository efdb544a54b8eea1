// The folder that a run leaves of each family: the names, shapes and keys of transformers' save_pretrained.
//
// tools/references/check_decoder_folders.py loads such folders with transformers. TESSERA_DECODER_FOLDERS names the
// place where this test leaves them for it.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "core/file.h"
#include "model/model_checks.h"
#include "parallel/engine.h"
#include "state/model_output.h"
#include "support/pack_padded.h"
#include "support/test_folder.h"
#include "weights/load_weights.h"
#include "weights/model_folder.h"
#include "weights/weights.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

Json metadata_json(const TensorFile& file, const char* key) {
  return parse_json(file.metadata.at(key).get<std::string>(), key);
}

// By two ranks that keep half of it each.
void save(const TensorFile& file, const fs::path& folder) {
  run_thread_ranks(2, {}, [&](World& world) {
    const auto model = model_of(file, at::kCPU);
    EngineOptions options;
    options.spread.strategy = "full_shard";
    Engine engine(world, *model, model->units(), options);
    prepare_output_folder(world, folder);
    save_model_folder(world, engine, {*model, metadata_json(file, "config"), metadata_json(file, "generation_config")},
                      folder);
  });
}

class DecoderFolder : public testing::TestWithParam<ModelCase> {
 protected:
  DecoderFolder() {
    const char* kept = std::getenv("TESSERA_DECODER_FOLDERS");
    folder_ = (kept != nullptr ? fs::path(kept) : temporary_.path()) / GetParam().name;
    save(file_, folder_);
  }

  TestFolder temporary_;
  fs::path folder_;
  TensorFile file_ = model_reference(GetParam().name);
};

TEST_P(DecoderFolder, HasTheNamesShapesAndKeysOfTransformers) {
  const Weights weights = Weights::open(folder_);
  std::set<std::string> names;
  for (const WeightEntry& entry : weights.entries()) {
    names.insert("w." + entry.name);
    ASSERT_TRUE(file_.has("w." + entry.name)) << entry.name;
    EXPECT_EQ(entry.shape, file_.at("w." + entry.name).sizes().vec()) << entry.name;
  }
  for (const auto& [name, tensor] : file_.tensors) {
    EXPECT_TRUE(!name.starts_with("w.") || names.contains(name)) << name << " is missing";
  }
  EXPECT_EQ(read_json_file(folder_ / "config.json"), metadata_json(file_, "config"));
  EXPECT_EQ(read_json_file(folder_ / "generation_config.json"), metadata_json(file_, "generation_config"));
}

TEST_P(DecoderFolder, IsTheSameModelWhenItIsLoaded) {
  const auto model = model_of(file_, at::kCPU), loaded = load_language_model(ModelFolder::open(folder_), at::kFloat);
  UnitRunner runner;
  const at::NoGradGuard no_grad;
  const PackedBatch batch = pack_padded(file_.at("ids_right"), file_.at("mask_right"), file_.at("labels_right"));
  EXPECT_TRUE(at::equal(loaded->logits(batch, runner), model->logits(batch, runner)));
}

INSTANTIATE_TEST_SUITE_P(All, DecoderFolder, testing::ValuesIn(decoder_cases()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace tessera
