#include "weights/foreign/foreign_checkpoint.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>
#include <vector>

#include "core/file.h"
#include "support/test_folder.h"
#include "support/weight_files.h"
#include "weights/checkpoint_reader.h"
#include "weights/foreign/foreign_tensors.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// tools/references/foreign_checkpoints.py made them of the same run.
fs::path foreign_folder(const std::string& name) {
  return fs::path(TESSERA_TEST_DATA_FOLDER) / "foreign" / name;
}

std::vector<float> values_of(CheckpointReader& reader, const StoredTensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(checked_numel(tensor.shape).value()));
  reader.read({{&tensor, 0, std::ssize(values), reinterpret_cast<char*>(values.data())}});
  return values;
}

class ForeignFolder : public testing::TestWithParam<const char*> {};

TEST_P(ForeignFolder, HoldsTheSameStateAsEveryOther) {
  const ForeignCheckpoint found = open_foreign_checkpoint(foreign_folder(GetParam()));
  EXPECT_EQ(found.index.numbers.at(kNumUpdates), 5);
  EXPECT_EQ(found.num_advanced.value_or(5), 5);
  EXPECT_FALSE(found.index.numbers.contains(kLossScale));
  CheckpointReader reader(foreign_folder(GetParam()), found.index);
  CheckpointReader wanted(foreign_folder("zero1"), open_foreign_checkpoint(foreign_folder("zero1")).index);
  int num_compared = 0;
  for (const auto& [name, tensor] : wanted.index().tensors) {
    const auto same = reader.index().tensors.find(name);
    if (same == reader.index().tensors.end()) {
      EXPECT_TRUE(name.starts_with(kOptimizerPrefix) && !found.numbered.empty()) << name;
      continue;
    }
    ++num_compared;
    ASSERT_EQ(same->second.shape, tensor.shape) << name;
    const std::vector<float> theirs = values_of(wanted, tensor), ours = values_of(reader, same->second);
    for (std::size_t i = 0; i < ours.size(); ++i) ASSERT_NEAR(ours[i], theirs[i], 2e-4) << name << " " << i;
  }
  EXPECT_EQ(num_compared, found.numbered.empty() ? 3 * 29 : 29);
}

// A rank reads only its own part, which may begin and end anywhere.
TEST_P(ForeignFolder, IsReadInAnyParts) {
  CheckpointReader reader(foreign_folder(GetParam()), open_foreign_checkpoint(foreign_folder(GetParam())).index);
  for (const auto& [name, tensor] : reader.index().tensors) {
    const std::vector<float> whole = values_of(reader, tensor);
    const auto numel = std::ssize(whole);
    for (std::int64_t begin = 0; begin < numel; begin += 1 + numel / 5) {
      const std::int64_t end = std::min(numel, begin + 1 + numel / 3);
      std::vector<float> part(static_cast<std::size_t>(end - begin));
      reader.read({{&tensor, begin, end, reinterpret_cast<char*>(part.data())}});
      EXPECT_EQ(std::memcmp(part.data(), whole.data() + begin, part.size() * sizeof(float)), 0) << name;
    }
  }
}

TEST_P(ForeignFolder, AMissingOrShortFileIsRefusedByName) {
  const TestFolder folder;
  const fs::path copy = folder.path() / "copy";
  fs::copy(foreign_folder(GetParam()), copy, fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(foreign_folder(GetParam()))) {
    const std::string name = entry.path().filename().string();
    // Not needed: the model's other files; of several ranks' model states of ZeRO 3 only the first.
    if (!entry.is_regular_file() || name.ends_with(".json") || name.starts_with("rng_state")) continue;
    if (name.ends_with("model_states.pt") && name.find("rank_0_") == std::string::npos && name.starts_with("zero"))
      continue;
    const fs::path file = copy / fs::relative(entry.path(), foreign_folder(GetParam()));
    fs::resize_file(file, fs::file_size(file) / 2);
    EXPECT_REFUSED(open_foreign_checkpoint(copy), name == "latest" ? "global" : name);
    fs::remove(file);
    if (name != "scheduler.pt") {
      EXPECT_THROW(open_foreign_checkpoint(copy), UsageError) << name;
    }
    fs::copy_file(entry.path(), file);
  }
  EXPECT_NO_THROW(open_foreign_checkpoint(copy));
}

// What a resume reads of a folder, after it has checked it.
struct ReadState {
  std::map<std::string, std::vector<float>> values;
  std::map<std::string, double> numbers;

  friend bool operator==(const ReadState&, const ReadState&) = default;
};

ReadState checked_state(const fs::path& folder) {
  const ForeignCheckpoint found = open_foreign_checkpoint(folder);
  CheckpointReader reader(folder, found.index);
  reader.check_sizes();
  reader.verify(0, 1);
  ReadState state{{}, found.index.numbers};
  for (const auto& [name, tensor] : found.index.tensors) {
    if (tensor.type == WeightType::kF32) state.values[name] = values_of(reader, tensor);
  }
  for (const auto& [number, states] : found.numbered) {
    for (const auto& [name, tensor] : states) state.values[std::to_string(number) + name] = values_of(reader, tensor);
  }
  return state;
}

// A flipped bit is refused by a message that names the file, or changes nothing, if it lies between the records. Files
// without checksums (safetensors, .metadata, JSON, `latest`) may give other values, but are read or refused.
TEST_P(ForeignFolder, FlippedBitsAreRefusedOrChangeNothing) {
  const TestFolder folder;
  const fs::path copy = folder.path() / "copy";
  fs::copy(foreign_folder(GetParam()), copy, fs::copy_options::recursive);
  const ReadState intact = checked_state(copy);
  int num_refused = 0, num_accepted = 0;
  unsigned random = 1;
  for (const auto& entry : fs::recursive_directory_iterator(foreign_folder(GetParam()))) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().filename().string();
    const fs::path file = copy / fs::relative(entry.path(), foreign_folder(GetParam()));
    const std::string bytes = read_file(file);
    const bool has_checksums = bytes.starts_with("PK");
    for (int i = 0; i < 24; ++i) {
      random = random * 1664525 + 1013904223;
      std::string changed = bytes;
      const std::size_t place = random % changed.size();
      changed[place] = static_cast<char>(changed[place] ^ (1 << random / 65536 % 8));
      std::ofstream(file, std::ios::binary) << changed;
      try {
        const bool is_same = checked_state(copy) == intact;
        EXPECT_TRUE(is_same || !has_checksums) << name << " byte " << place << " of " << bytes.size();
        ++num_accepted;
      } catch (const UsageError& error) {
        EXPECT_TRUE(std::string(error.what()).find(has_checksums ? name : copy.string()) != std::string::npos)
            << error.what();
        ++num_refused;
      }
    }
    std::ofstream(file, std::ios::binary) << bytes;
  }
  EXPECT_GT(num_refused, 0);
  EXPECT_GT(num_accepted, 0);
}

INSTANTIATE_TEST_SUITE_P(All, ForeignFolder,
                         testing::Values("trainer", "trainer_bin", "fsdp", "dcp", "zero1", "zero2", "zero3"),
                         [](const auto& name) { return std::string(name.param); });

// It skipped two of five steps and has doubled since.
TEST(ForeignCheckpoint, OfFloat16TheMastersAndTheLossScaleAreTaken) {
  const ForeignCheckpoint found = open_foreign_checkpoint(foreign_folder("zero2_fp16"));
  EXPECT_EQ(found.index.step, 5);
  EXPECT_EQ(found.num_advanced, 3);
  EXPECT_EQ(found.index.numbers.at(kNumUpdates), 3);
  EXPECT_EQ(found.index.numbers.at(kLossScale), 1 << 18);
  EXPECT_EQ(found.index.numbers.at(kNumCleanSteps), 3);
  EXPECT_EQ(found.index.numbers.at(kHysteresis), 1);
  for (const auto& [name, tensor] : found.index.tensors) EXPECT_EQ(tensor.type, WeightType::kF32) << name;
}

TEST(ForeignCheckpoint, ProgramsAreKnownByTheirFiles) {
  EXPECT_EQ(foreign_program(foreign_folder("trainer")), "Hugging Face's Trainer");
  EXPECT_EQ(foreign_program(foreign_folder("fsdp")), "accelerate's FSDP");
  EXPECT_EQ(foreign_program(foreign_folder("dcp")), "torch.distributed.checkpoint");
  EXPECT_EQ(foreign_program(foreign_folder("zero2")), "DeepSpeed");
  EXPECT_EQ(foreign_program(foreign_folder("zero2") / "global_step5"), "DeepSpeed");
  EXPECT_EQ(foreign_program(foreign_folder("model")), "");
  EXPECT_EQ(foreign_program(foreign_folder("none")), "");
}

TEST(ForeignCheckpoint, WhatWrappersAddToNamesIsLeftOut) {
  EXPECT_EQ(unwrapped_name("_fsdp_wrapped_module.h.0._checkpoint_wrapped_module.ln.weight"), "h.0.ln.weight");
  EXPECT_EQ(unwrapped_name("_orig_mod.x_orig_mod.weight"), "x_orig_mod.weight");
  const TestFolder folder;
  std::ofstream(folder.path() / "a") << "12345678";
  ForeignTensors tensors(folder.path());
  tensors.add_file("a");
  tensors.add_model("module.w", {WeightType::kF32, {1}, {{"a", 0, 1, 0}}});
  tensors.add_state("exp_avg", "module.w", {WeightType::kF32, {1}, {{"a", 0, 1, 4}}});
  EXPECT_REFUSED(tensors.add_model("module._orig_mod.w", {WeightType::kF32, {1}, {}}), "occurs twice");
  const ForeignCheckpoint checkpoint = tensors.finish();
  EXPECT_TRUE(checkpoint.index.tensors.contains("model.w"));
  EXPECT_TRUE(checkpoint.index.tensors.contains("optimizer.exp_avg.w"));
}

TEST(ForeignCheckpoint, PartsOutsideOfTheirFileAreRefused) {
  const TestFolder folder;
  std::ofstream(folder.path() / "a") << "12345678";
  ForeignTensors tensors(folder.path());
  tensors.add_file("a");
  tensors.add_model("w", {WeightType::kF32, {2}, {{"a", 0, 2, 4}}});
  EXPECT_REFUSED(tensors.finish(), "tensor 'model.w' ends behind the end of a");
  ForeignTensors others(folder.path());
  EXPECT_REFUSED(others.add_file("b"), "b: No such file");
  others.set_num_updates(5, "a");
  EXPECT_REFUSED(others.set_num_updates(6, "a"), "some parameters were updated 5 times, others 6 times");
}

}  // namespace
}  // namespace tessera
