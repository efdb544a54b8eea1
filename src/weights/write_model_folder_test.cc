#include "weights/write_model_folder.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <set>

#include "core/file.h"
#include "support/test_folder.h"
#include "support/weight_files.h"
#include "weights/model_folder.h"
#include "weights/weights.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::vector<NamedTensor> tensors_of(const Weights& weights) {
  std::vector<NamedTensor> tensors;
  for (const WeightEntry& entry : weights.entries()) tensors.push_back({entry.name, tensor_of(weights, entry)});
  return tensors;
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

// Every name of the source exists, as a tensor or as a tie to one, and every tensor has its values.
void expect_same(const Weights& written, const Weights& source) {
  std::set<std::string> names, expected;
  for (const WeightEntry& entry : written.entries()) names.insert(entry.name);
  for (const auto& [name, held_by] : written.ties()) names.insert(name);
  for (const WeightEntry& entry : source.entries()) expected.insert(entry.name);
  EXPECT_EQ(names, expected);
  for (const WeightEntry& entry : written.entries()) {
    EXPECT_TRUE(at::equal(tensor_of(written, entry), tensor_of(source, entry.name))) << entry.name;
  }
}

class WriteModelFolder : public testing::Test {
 protected:
  fs::path target() const { return folder_.path() / "out"; }
  TestFolder folder_;
  const ModelFolder source_ = ModelFolder::open(reference("bloom_bin"));
  const Weights weights_ = Weights::open(source_.path());
  const std::vector<NamedTensor> tensors_ = tensors_of(weights_);
};

TEST_F(WriteModelFolder, HoldsWhatTransformersExpectsAndNothingElse) {
  write_model_folder(target(), source_.config(), tensors_);
  EXPECT_EQ(names_in(target()), (std::set<std::string>{"config.json", "generation_config.json", "model.safetensors"}));
  EXPECT_EQ(names_in(folder_.path()), std::set<std::string>{"out"});
  const Weights written = Weights::open(target());
  EXPECT_EQ(written.metadata().at("format"), "pt");
  EXPECT_EQ(read_json_file(target() / "config.json"), source_.config());
  EXPECT_EQ(read_json_file(target() / "generation_config.json").at("eos_token_id"),
            source_.config().at("eos_token_id"));
  expect_same(written, weights_);
}

TEST_F(WriteModelFolder, TiedWeightsAreWrittenOnce) {
  write_model_folder(target(), source_.config(), tensors_);
  const Weights written = Weights::open(target());
  EXPECT_EQ(written.find("lm_head.weight"), nullptr);
  EXPECT_EQ(written.entries().size() + 1, weights_.entries().size());
  EXPECT_EQ(written.ties(), weights_.ties());  // still known

  write_model_folder(folder_.path() / "bin", source_.config(), tensors_, {.weights = {.format = WeightFormat::kTorch}});
  const Weights bin = Weights::open(folder_.path() / "bin");
  EXPECT_EQ(bin.ties(), weights_.ties());
  expect_same(bin, weights_);
  EXPECT_LT(bin.files().front()->bytes().size(), weights_.files().front()->bytes().size() + 1000);
}

TEST_F(WriteModelFolder, ShardsAreSmallEnoughAndIndexed) {
  for (const WeightFormat format : {WeightFormat::kSafetensors, WeightFormat::kTorch}) {
    const fs::path folder = folder_.path() / (format == WeightFormat::kTorch ? "bin" : "safetensors");
    write_model_folder(folder, source_.config(), tensors_, {.weights = {.format = format, .max_shard_bytes = 8000}});
    const Weights written = Weights::open(folder);
    EXPECT_EQ(written.files().size(), 4u);
    EXPECT_TRUE(fs::exists(folder / (format == WeightFormat::kTorch ? "pytorch_model-00004-of-00004.bin"
                                                                    : "model-00004-of-00004.safetensors")));
    std::vector<std::int64_t> bytes(written.files().size());
    std::set<std::int64_t> seen;
    for (const WeightEntry& entry : written.entries()) {
      if (entry.name != "lm_head.weight") bytes[entry.file] += entry.num_bytes();
    }
    for (const std::int64_t each : bytes) EXPECT_LE(each, 8000);
    EXPECT_EQ(written.ties(), weights_.ties());
    expect_same(written, weights_);
  }
}

TEST_F(WriteModelFolder, TheTypeIsConvertedAndToldInTheConfig) {
  write_model_folder(target(), source_.config(), tensors_, {.weights = {.dtype = WeightType::kBF16}});
  const Weights written = Weights::open(target());
  for (const WeightEntry& entry : written.entries()) {
    EXPECT_EQ(entry.type, WeightType::kBF16);
    EXPECT_TRUE(at::equal(tensor_of(written, entry), tensor_of(weights_, entry.name).to(at::kBFloat16)));
  }
  const Json config = read_json_file(target() / "config.json");
  EXPECT_EQ(config.at("dtype"), "bfloat16");  // the name that this config used before
  EXPECT_FALSE(config.contains("torch_dtype"));
}

TEST_F(WriteModelFolder, AnExistingFolderKeepsItsOtherFilesAndLosesStaleWeights) {
  write_model_folder(target(), source_.config(), tensors_, {.weights = {.max_shard_bytes = 8000}});
  write_file_atomically(target() / "notes.txt", "mine");
  write_model_folder(target(), source_.config(), tensors_);
  EXPECT_EQ(names_in(target()),
            (std::set<std::string>{"config.json", "generation_config.json", "model.safetensors", "notes.txt"}));
  expect_same(Weights::open(target()), weights_);
}

TEST_F(WriteModelFolder, AFailureLeavesNothingBehind) {
  ModelFolderOptions options;
  options.tokenizer_files = {folder_.path() / "no_such_tokenizer.json"};
  EXPECT_THROW(write_model_folder(target(), source_.config(), tensors_, options), Error);
  EXPECT_TRUE(names_in(folder_.path()).empty());
}

TEST_F(WriteModelFolder, TokenizerFilesAndGenerationConfigAreCopiedThrough) {
  write_file_atomically(folder_.path() / "tokenizer.json", "{\"any\": 1}\n");
  ModelFolderOptions options;
  options.tokenizer_files = {folder_.path() / "tokenizer.json"};
  options.generation_config = Json{{"max_new_tokens", 7}};
  write_model_folder(target(), source_.config(), tensors_, options);
  EXPECT_EQ(read_file(target() / "tokenizer.json"), "{\"any\": 1}\n");
  EXPECT_EQ(ModelFolder::open(target()).generation_config(), options.generation_config);
  EXPECT_EQ(tokenizer_files_in(target()).size(), 1u);
}

TEST(WriteWeights, OddTensorsComeBackFromBothFormats) {
  const TestFolder folder;
  const Weights source = Weights::open(reference("odd.pth"));
  for (const WeightFormat format : {WeightFormat::kSafetensors, WeightFormat::kTorch}) {
    write_weights_file(folder.path() / "w", tensors_of(source), {.format = format});
    const Weights written = Weights::open(folder.path() / "w");
    EXPECT_EQ(written.format(), format);
    EXPECT_EQ(written.entries().size(), source.entries().size());
    expect_same(written, source);
  }
}

TEST(WriteWeights, ANameThatSafetensorsKeepForThemselvesIsRefused) {
  const TestFolder folder;
  EXPECT_REFUSED(write_weights_file(folder.path() / "w", {{"__metadata__", at::ones({1})}}, {}), "'__metadata__'");
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(WriteWeights, ALinkStaysALinkAndAFolderAFolder) {
  const TestFolder folder;
  write_file_atomically(folder.path() / "real.safetensors", "old");
  fs::create_symlink("real.safetensors", folder.path() / "link.safetensors");
  write_weights_file(folder.path() / "link.safetensors", {{"w", at::ones({1})}}, {});
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link.safetensors"));
  EXPECT_EQ(Weights::open(folder.path() / "real.safetensors").entries().size(), 1u);
  fs::create_directory(folder.path() / "w.bin");
  EXPECT_REFUSED(write_weights_file(folder.path() / "w.bin", {{"w", at::ones({1})}}, {}), "it is a folder");
}

TEST(WriteWeights, ATypeThatTorchFilesLackIsRefused) {
  const TestFolder folder;
  const Weights source = Weights::open(reference("every_type.safetensors"));
  EXPECT_REFUSED(write_weights_file(folder.path() / "w", tensors_of(source), {.format = WeightFormat::kTorch}),
                 "cannot be written to a torch .bin file");
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(ModelFolder, MissingThingsAreNamed) {
  const TestFolder folder;
  EXPECT_REFUSED(ModelFolder::open(folder.path()), "config.json is missing");
  EXPECT_REFUSED(ModelFolder::open(folder.path() / "none"), "is not a folder");
  write_file_atomically(folder.path() / "config.json", "[]");
  EXPECT_REFUSED(ModelFolder::open(folder.path()), "config.json: expected an object");
}

TEST(ModelFolder, HubNamesLeadIntoTheCache) {
  const TestFolder home;
  const Environment environment({{"HF_HOME", home.path().string()}});
  EXPECT_REFUSED(find_model_folder("bigscience/bloom-560m", environment),
                 (home.path() / "hub/models--bigscience--bloom-560m").string());
  const fs::path model = home.path() / "hub/models--bigscience--bloom-560m";
  fs::create_directories(model / "snapshots/abc123");
  fs::create_directories(model / "refs");
  write_file_atomically(model / "refs/main", "abc123");
  write_file_atomically(model / "snapshots/abc123/config.json", "{}");
  EXPECT_EQ(find_model_folder("bigscience/bloom-560m", environment), model / "snapshots/abc123");
  EXPECT_EQ(find_model_folder(home.path().string(), environment), home.path());
  EXPECT_REFUSED(find_model_folder("/no/such/folder", environment), "there is no model folder /no/such/folder");
}

TEST(ModelFolder, HubNamesAreLookedUpWhereHuggingFaceLooks) {
  const TestFolder folder;
  const std::string root = folder.path().string();
  const auto fill = [&](const fs::path& cache) {
    const fs::path model = folder.path() / cache / "models--bigscience--bloom-560m";
    fs::create_directories(model / "refs");
    fs::create_directories(model / "snapshots/abc123");
    write_file_atomically(model / "refs/main", "abc123\n");
    write_file_atomically(model / "snapshots/abc123/config.json", "{}");
    return model / "snapshots/abc123";
  };
  const std::vector<std::pair<std::map<std::string, std::string>, fs::path>> places = {
      {{{"TRANSFORMERS_CACHE", root + "/t"}, {"HF_HOME", root + "/h"}}, "t"},
      {{{"HF_HUB_CACHE", root + "/c"}, {"HUGGINGFACE_HUB_CACHE", root + "/old"}}, "c"},
      {{{"HUGGINGFACE_HUB_CACHE", root + "/old"}, {"HF_HOME", root + "/h"}}, "old"},
      {{{"HF_HOME", "~/h"}, {"HOME", root}, {"XDG_CACHE_HOME", root + "/x"}}, "h/hub"},
      {{{"XDG_CACHE_HOME", root + "/x"}, {"HOME", root}}, "x/huggingface/hub"},
      {{{"HOME", root}}, ".cache/huggingface/hub"}};
  for (const auto& [variables, cache] : places) {
    EXPECT_REFUSED(find_model_folder("bigscience/bloom-560m", Environment(variables)),
                   (folder.path() / cache).string());
    const fs::path there = fill(cache);
    EXPECT_EQ(find_model_folder("bigscience/bloom-560m", Environment(variables)), there) << cache;
    fs::remove_all(folder.path() / cache);
  }
  // transformers' own folder does not hide the hub's.
  const Environment both({{"TRANSFORMERS_CACHE", root + "/t"}, {"HF_HOME", root + "/h"}});
  const fs::path in_hub = fill("h/hub");
  EXPECT_EQ(find_model_folder("bigscience/bloom-560m", both), in_hub);
}

}  // namespace
}  // namespace tessera
