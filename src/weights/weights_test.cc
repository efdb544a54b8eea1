#include "weights/weights.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "support/test_folder.h"
#include "support/weight_files.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class ReferenceFile : public testing::TestWithParam<const char*> {};

// Every tensor that the original wrote, with its type, shape and values; and no others.
TEST_P(ReferenceFile, HoldsWhatTheOriginalSaved) {
  const Weights weights = Weights::open(reference(GetParam()));
  const Json expected = read_json_file(reference("expected.json")).at(GetParam());
  std::size_t num_found = 0;
  for (const auto& [name, facts] : expected.items()) {
    SCOPED_TRACE(name);
    const WeightEntry* entry = weights.find(name);
    if (entry == nullptr) {  // safetensors hold tied weights once
      EXPECT_EQ(name, "lm_head.weight");
      EXPECT_EQ(weights.format(), WeightFormat::kSafetensors);
      continue;
    }
    ++num_found;
    EXPECT_EQ(torch_name(entry->type), facts.at("dtype").get<std::string>());
    EXPECT_EQ(entry->shape, facts.at("shape").get<std::vector<std::int64_t>>());
    const at::Tensor flat = tensor_of(weights, *entry).to(at::kDouble).reshape({-1});
    EXPECT_NEAR(flat.sum().item<double>(), facts.at("sum").get<double>(), 1e-9 * static_cast<double>(flat.numel()));
    const auto first = facts.at("first").get<std::vector<double>>();
    for (std::size_t i = 0; i < first.size(); ++i) {
      EXPECT_EQ(flat[static_cast<std::int64_t>(i)].item<double>(), first[i]);
    }
  }
  EXPECT_EQ(num_found, weights.entries().size());
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceFile,
                         testing::Values("bloom_safetensors", "bloom_sharded", "bloom_bin", "bloom_bin_sharded",
                                         "bloom_base", "odd.pth", "odd_legacy.pth", "batch_norm.pth",
                                         "every_type.safetensors"),
                         [](const auto& file) {
                           std::string name = file.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST(Weights, TiedTensorsOfAPickleAreNamed) {
  const auto ties = Weights::open(reference("bloom_bin")).ties();
  ASSERT_EQ(ties.size(), 1u);
  EXPECT_EQ(ties[0].first, "lm_head.weight");
  EXPECT_EQ(ties[0].second, "transformer.word_embeddings.weight");
  EXPECT_TRUE(Weights::open(reference("bloom_safetensors")).ties().empty());
}

TEST(Weights, ATensorOutlivesItsWeights) {
  at::Tensor tensor;
  {
    const Weights weights = Weights::open(reference("bloom_safetensors"));
    tensor = tensor_of(weights, "transformer.ln_f.weight");
  }
  const Weights again = Weights::open(reference("bloom_safetensors"));
  EXPECT_TRUE(at::equal(tensor, tensor_of(again, "transformer.ln_f.weight")));
}

TEST(Weights, WritingToATensorLeavesTheFileAlone) {
  const std::string before = read_file(reference("bloom_safetensors") / "model.safetensors");
  const Weights weights = Weights::open(reference("bloom_safetensors"));
  tensor_of(weights, "transformer.ln_f.weight").fill_(1e9);
  EXPECT_EQ(read_file(reference("bloom_safetensors") / "model.safetensors"), before);
}

TEST(Weights, AnUnknownNameIsRefusedWithTheNearest) {
  const Weights weights = Weights::open(reference("bloom_base"));
  EXPECT_REFUSED(tensor_of(weights, "ln_f.wieght"), "no tensor 'ln_f.wieght', did you mean 'ln_f.weight'?");
}

TEST(Weights, RefusedPicklesAreNamed) {
  EXPECT_REFUSED(Weights::open(reference("refused_module.pth")), "torch.nn.modules.linear.Linear");
  EXPECT_REFUSED(Weights::open(reference("refused_checkpoint.pth")),
                 "entry 'model' is a dict, not a tensor: this is a checkpoint of a training script");
  EXPECT_REFUSED(Weights::open(reference("refused_script.pth")), "TorchScript");
}

TEST(Weights, AFolderWithoutWeightsSaysWhatWasExpected) {
  const TestFolder folder;
  EXPECT_REFUSED(Weights::open(folder.path()), "holds no weights: expected model.safetensors");
  EXPECT_REFUSED(Weights::open(folder.path() / "none.safetensors"), "none.safetensors: No such file");
}

TEST(Weights, AGitLfsPointerIsCalledByItsName) {
  const TestFolder folder;
  write_file_atomically(folder.path() / "model.safetensors",
                        "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
  EXPECT_REFUSED(Weights::open(folder.path()), "git-lfs pointer");
}

// A safetensors file begins with its header's length, which may look like another format's mark.
TEST(Weights, AHeaderOfAnyLengthIsSafetensors) {
  const TestFolder folder;
  for (const std::size_t length : {0x0280, 0x4b50}) {  // "\x80\x02", "PK"
    std::string header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
    header.resize(length, ' ');
    const std::string length_bytes{static_cast<char>(length & 0xff), static_cast<char>(length >> 8), 0, 0, 0, 0, 0, 0};
    write_file_atomically(folder.path() / "m.safetensors", length_bytes + header + "x");
    EXPECT_EQ(Weights::open(folder.path() / "m.safetensors").format(), WeightFormat::kSafetensors) << length;
  }
}

TEST(Weights, WhatIsNoFileIsRefusedAtOnce) {
  const TestFolder folder;
  ASSERT_EQ(::mkfifo((folder.path() / "pipe.bin").c_str(), 0600), 0);
  EXPECT_REFUSED(Weights::open(folder.path() / "pipe.bin"), "not a regular file");
  fs::create_directory(folder.path() / "model.safetensors");
  EXPECT_REFUSED(Weights::open(folder.path()), "model.safetensors: it is a folder");
}

// A copy of the sharded folder whose index has been changed.
class ShardedFolder : public testing::TestWithParam<const char*> {
 protected:
  ShardedFolder() { fs::copy(reference("bloom_sharded"), folder_.path(), fs::copy_options::recursive); }
  Json index() const { return read_json_file(index_path()); }
  void set_index(const Json& index) { write_file_atomically(index_path(), index.dump()); }
  fs::path index_path() const { return folder_.path() / "model.safetensors.index.json"; }

  TestFolder folder_;
};

TEST_F(ShardedFolder, AMissingShardIsNamed) {
  fs::remove(folder_.path() / "model-00002-of-00002.safetensors");
  EXPECT_REFUSED(Weights::open(folder_.path()), "model-00002-of-00002.safetensors, which is missing");
}

TEST_F(ShardedFolder, AnIndexThatListsTooMuchIsRefused) {
  Json changed = index();
  changed["weight_map"]["transformer.h.9.bias"] = "model-00001-of-00002.safetensors";
  set_index(changed);
  EXPECT_REFUSED(
      Weights::open(folder_.path()),
      "tensor 'transformer.h.9.bias': the index says model-00001-of-00002.safetensors, which does not hold it");
}

TEST_F(ShardedFolder, AnIndexThatListsTooLittleIsRefused) {
  Json changed = index();
  changed["weight_map"].erase("transformer.ln_f.weight");
  set_index(changed);
  EXPECT_REFUSED(Weights::open(folder_.path()), "tensor 'transformer.ln_f.weight'");
}

TEST_F(ShardedFolder, AnIndexThatNamesTheWrongShardIsRefused) {
  Json changed = index();
  changed["weight_map"]["transformer.ln_f.weight"] = "model-00001-of-00002.safetensors";
  set_index(changed);
  EXPECT_REFUSED(Weights::open(folder_.path()), "but the index says model-00001-of-00002.safetensors");
}

TEST_F(ShardedFolder, AnIndexNeverLeadsOutOfItsFolder) {
  for (const char* name : {"../bloom.safetensors", "/etc/passwd", "..", ""}) {
    Json changed = index();
    changed["weight_map"]["transformer.ln_f.weight"] = name;
    set_index(changed);
    EXPECT_REFUSED(Weights::open(folder_.path()), "expected the name of a file in the same folder");
  }
  set_index(Json::object());
  EXPECT_REFUSED(Weights::open(folder_.path()), "expected an object \"weight_map\"");
}

}  // namespace
}  // namespace tessera
