#include "experiment/catalogue.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/log.h"
#include "support/contains.h"
#include "support/message_of.h"

namespace tessera {
namespace {

struct Fact {
  const char* name;
  const char* job_name;
  int nodes, gpus_per_node, cpus;
  const char* memory;
  const char* time;
};

// The workshops' tables, a row or two of each.
constexpr Fact kFacts[] = {
    {"ddp/baseline", "ddp_G1N1", 1, 1, 4, "64G", "00:30:00"},
    {"ddp/multi_gpu/8_gpus", "ddp_8G1N", 1, 8, 32, "512G", "00:30:00"},
    {"ddp/multi_node/8_nodes", "ddp_16G8N", 8, 2, 8, "64G", "00:30:00"},
    {"fsdp/bloom/multi_gpu/4_gpus", "F-B-4G1N", 1, 4, 16, "64G", "01:00:00"},
    {"fsdp/bloom/multi_node/2_nodes", "F-B-4G2N", 2, 1, 8, "64G", "01:00:00"},
    {"fsdp/custom_model/multi_gpu/8_gpus", "F-C-8G1N", 1, 8, 32, "0", "00:30:00"},
    {"fsdp/custom_model/weak_scaling/16_gpus", "F-CW-16G2N", 2, 8, 32, "0", "00:30:00"},
    {"deepspeed/baseline", "DS-BASE", 1, 1, 4, "32G", "12:00:00"},
    {"deepspeed/single_gpu/cpu_offloading/pinned_memory/zero_3", "3ZOP-1G1N", 1, 1, 4, "32G", "01:00:00"},
    {"deepspeed/multi_gpu/6_gpus", "2ZO-6G1N", 1, 6, 24, "32G", "01:00:00"},
    {"deepspeed/multi_gpu/2_gpus_stages_comparison/cpu_offloading/zero_2", "2ZO-2G1N", 1, 2, 8, "32G", "01:00:00"},
    {"deepspeed/multi_node/6_nodes", "2ZO-12G6N", 6, 2, 8, "32G", "01:00:00"},
};

TEST(Catalogue, HoldsTheWorkshopsExperiments) {
  const Catalogue catalogue({});
  EXPECT_EQ(catalogue.select({"ddp", "fsdp", "deepspeed"}).size(), 55U);
  for (const Fact& fact : kFacts) {
    const ExperimentSpec* spec = catalogue.find(fact.name);
    ASSERT_NE(spec, nullptr) << fact.name;
    EXPECT_EQ(spec->resources.text("job_name"), fact.job_name) << fact.name;
    EXPECT_EQ(spec->resources.count("nodes", 1), fact.nodes) << fact.name;
    EXPECT_EQ(spec->resources.count("gpus_per_node", 1), fact.gpus_per_node) << fact.name;
    EXPECT_EQ(spec->resources.count("cpus_per_task", 1), fact.cpus) << fact.name;
    EXPECT_EQ(spec->resources.text("memory"), fact.memory) << fact.name;
    EXPECT_EQ(spec->resources.text("time"), fact.time) << fact.name;
  }
}

TEST(Catalogue, HasThePresetOfTheWorkshopsCode) {
  const Catalogue code({.preset = "code"});
  EXPECT_EQ(code.find("fsdp/bloom/multi_node/4_nodes")->resources.count("gpus_per_node", 1), 2);
  EXPECT_EQ(code.find("fsdp/bloom/baseline")->settings.text("max_train_samples"), "500");
  EXPECT_EQ(code.find("fsdp/bloom/multi_gpu/2_gpus")->settings.text("max_train_samples"), "400");
  EXPECT_FALSE(code.find("fsdp/bloom/baseline")->settings.has("fp16"));
  EXPECT_EQ(code.find("fsdp/custom_model/single_node")->settings.text("hidden_size"), "1024");
  EXPECT_EQ(code.find("deepspeed/multi_node/2_nodes")->settings.text("samples_per_rank"), "500");
  EXPECT_TRUE(contains(message_of([] { Catalogue({.preset = "cod"}); }), "presets: guide, code"));
}

TEST(Catalogue, SelectsByNameFolderAndPattern) {
  const Catalogue catalogue({});
  const auto count = [&](const std::vector<std::string>& words) { return catalogue.select(words).size(); };
  EXPECT_EQ(count({"ddp/baseline"}), 1U);
  EXPECT_EQ(count({"ddp/baseline", "ddp"}), 7U);
  EXPECT_EQ(count({"ddp/"}), 7U);
  EXPECT_EQ(count({"*/2_gpus"}), 5U);
  EXPECT_EQ(count({"deepspeed/*zero_?"}), 16U);
  EXPECT_TRUE(contains(message_of([&] { count({"dpd/baseline"}); }), "did you mean 'ddp/baseline'?"));
}

TEST(Catalogue, TakesUsersFilesAndRefusesTheirMistakes) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "catalogue_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "own.json")
      << R"({"tessera_experiments": 1, "family": "own", "job": "gpt-qa", "experiments": {"a": {}}})";
  std::ofstream(folder / "my_ds.json.txt") << "text";
  EXPECT_NE(Catalogue({.folders = {folder}}).find("own/a"), nullptr);
  EXPECT_EQ(Catalogue({.folders = {folder}}).files("my_ds.json.txt").at("my_ds.json.txt"), "text");
  std::ofstream(folder / "two.json")
      << R"({"tessera_experiments": 1, "family": "ddp", "job": "gpt-qa", "experiments": {"baseline": {}}})";
  EXPECT_TRUE(contains(message_of([&] { Catalogue({.folders = {folder}}); }),
                       "ddp/baseline is already an experiment of ddp.json"));
  EXPECT_TRUE(contains(message_of([&] { Catalogue({.folders = {folder / "none"}}); }), "no such folder"));
}

TEST(Catalogue, NamesAFileWhoseKeyIsMisspelt) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "catalogue_key_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto warnings = [&](const std::string& text) {
    std::ofstream(folder / "x.json") << text;
    configure_log("warn", -1);
    testing::internal::CaptureStderr();
    EXPECT_EQ(Catalogue({.folders = {folder}}).find("own/a"), nullptr);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_TRUE(contains(warnings(R"({"tesera_experiments": 1, "family": "own", "experiments": {"a": {}}})"),
                       "x.json is skipped: it has \"tesera_experiments\"; did you mean \"tessera_experiments\"?"));
  EXPECT_TRUE(contains(warnings(R"({"family": "own", /* no key */ "experiments": {"a": {}}})"),
                       "x.json is skipped: \"tessera_experiments\": 1 is missing"));
  for (const char* other : {R"({"zero_optimization": {"stage": 2}})", "[1]", "{", ""}) EXPECT_EQ(warnings(other), "");
}

TEST(Catalogue, FindsFilesAndFoldersByReference) {
  const Catalogue catalogue({});
  EXPECT_TRUE(contains(catalogue.files("ds_configs/zero2.json").at("zero2.json"), "\"stage\": 2"));
  const auto tokenizer = catalogue.files("tiny/tokenizer");
  EXPECT_TRUE(tokenizer.contains("tokenizer/tokenizer.json"));
  EXPECT_EQ(catalogue.files("tiny/pictures").size(), 137U);
  EXPECT_TRUE(contains(message_of([&] { catalogue.files("tiny/none"); }), "no file or folder 'tiny/none'"));
}

}  // namespace
}  // namespace tessera
