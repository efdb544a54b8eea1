#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "core/file.h"
#include "core/json.h"
#include "support/program.h"
#include "support/test_folder.h"
#include "support/weight_bytes.h"
#include "support/weight_files.h"
#include "weights/safetensors.h"
#include "weights/weights.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// A folder with the header of BLOOM-560M; its 1.1 GB of data are a hole that takes no disk space and must not be read.
void write_bloom_560m(const fs::path& folder) {
  constexpr std::int64_t kHidden = 1024;
  std::vector<WeightEntry> entries;
  std::int64_t bytes = 0;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    WeightEntry entry;
    entry.name = name;
    entry.type = WeightType::kF16;
    entry.shape = std::move(shape);
    entry.numel = *checked_numel(entry.shape);
    bytes += entry.num_bytes();
    entries.push_back(std::move(entry));
  };
  const auto pair = [&](const std::string& name, std::vector<std::int64_t> shape) {
    add(name + ".bias", {shape.front()});
    add(name + ".weight", std::move(shape));
  };
  add("word_embeddings.weight", {250880, kHidden});
  pair("word_embeddings_layernorm", {kHidden});
  for (int i = 0; i < 24; ++i) {
    const std::string block = fmt::format("h.{}.", i);
    pair(block + "input_layernorm", {kHidden});
    pair(block + "self_attention.query_key_value", {3 * kHidden, kHidden});
    pair(block + "self_attention.dense", {kHidden, kHidden});
    pair(block + "post_attention_layernorm", {kHidden});
    pair(block + "mlp.dense_h_to_4h", {4 * kHidden, kHidden});
    pair(block + "mlp.dense_4h_to_h", {kHidden, 4 * kHidden});
  }
  pair("ln_f", {kHidden});
  const std::string header = compose_safetensors_header(entries, {{"format", "pt"}});
  write_file_atomically(folder / "model.safetensors", header);
  fs::resize_file(folder / "model.safetensors", header.size() + static_cast<std::uintmax_t>(bytes));
  write_file_atomically(folder / "config.json", R"({"architectures": ["BloomForCausalLM"], "model_type": "bloom"})");
}

TEST(Inspect, CountsBloom560mAsPublished) {
  const TestFolder folder;
  write_bloom_560m(folder.path());
  const Ended shown = run_tessera("inspect " + folder.path().string());
  ASSERT_EQ(shown.status, 0) << shown.output;
  for (const char* line : {"parameters  559,214,592\n", "dtype       float16\n",
                           "blocks      24 blocks with 302,309,376 parameters, 54 %\n",
                           "outside     word_embeddings with 256,901,120 parameters, 46 %\n",
                           "tied        lm_head.weight is word_embeddings.weight (according to config.json)\n"}) {
    EXPECT_TRUE(contains(shown.output, line)) << line << "is not in\n" << shown.output;
  }
  const Json json = parse_json(run_tessera("inspect --json " + folder.path().string()).output, "shown");
  EXPECT_EQ(json["parameters"], 559214592);
  EXPECT_EQ(json["bytes"], 2 * 559214592);
  EXPECT_EQ(json["parts"].size(), 24u + 3u);
  EXPECT_EQ(json["parts"][2]["name"], "h.0");
  EXPECT_EQ(json["parts"][2]["parameters"], 12596224);
}

TEST(Inspect, TakesLoneFilesAndCountsBuffersApart) {
  const Ended shown = run_tessera("inspect --json " + reference("batch_norm.pth").string());
  ASSERT_EQ(shown.status, 0) << shown.output;
  const Json json = parse_json(shown.output, "shown");
  EXPECT_EQ(json["parameters"], 2 * 3 * 3 * 3 + 3 + 3);  // a convolution, weight and bias of the norm
  EXPECT_EQ(json["buffer_elements"], 3 + 3 + 1);
  EXPECT_EQ(json["format"], "bin");
}

TEST(Inspect, RefusesWithStatusTwoAndTheReason) {
  const std::pair<std::string, const char*> cases[] = {
      {"inspect", "takes one model folder"},
      {"inspect /no/such/folder", "there is no model folder /no/such/folder"},
      {"inspect " + reference("refused_module.pth").string(), "torch.nn.modules.linear.Linear"},
      {"inspect " + reference("refused_script.pth").string(), "TorchScript"},
      {"inspect " + reference("expected.json").string(), "not a safetensors file"},
  };
  for (const auto& [arguments, reason] : cases) {
    const Ended ended = run_tessera(arguments);
    EXPECT_EQ(ended.status, 2) << ended.output;
    EXPECT_TRUE(contains(ended.output, reason)) << ended.output;
  }
}

// There and back again: every tensor keeps its bytes.
TEST(Convert, BetweenFormatsAndShardsNothingChanges) {
  const TestFolder folder;
  const std::string bin = folder.path() / "bin", shards = folder.path() / "shards";
  ASSERT_EQ(run_tessera(fmt::format("convert {} {} --format bin", reference("bloom_safetensors").string(), bin)).status,
            0);
  const Ended ended = run_tessera(fmt::format("convert {} {} --max_shard_size 16K", bin, shards));
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "41 tensors")) << ended.output;
  const Weights source = Weights::open(reference("bloom_safetensors")), written = Weights::open(shards);
  EXPECT_GT(written.files().size(), 2u);
  ASSERT_EQ(written.entries().size(), source.entries().size());
  for (const WeightEntry& entry : source.entries()) {
    const WeightEntry* there = written.find(entry.name);
    ASSERT_NE(there, nullptr) << entry.name;
    EXPECT_EQ(there->shape, entry.shape);
    EXPECT_EQ(bytes_of(written, *there), bytes_of(source, entry)) << entry.name;
  }
  EXPECT_EQ(read_json_file(folder.path() / "shards/config.json"),
            read_json_file(reference("bloom_safetensors") / "config.json"));
  EXPECT_EQ(read_file(folder.path() / "shards/generation_config.json"),
            read_file(reference("bloom_safetensors") / "generation_config.json"));
}

std::map<std::string, std::string> contents_of(const fs::path& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::directory_iterator(folder)) contents[entry.path().filename()] = read_file(entry.path());
  return contents;
}

TEST(Convert, ChangesTheType) {
  const TestFolder folder;
  const fs::path model = folder.path() / "model";
  const Ended ended =
      run_tessera(fmt::format("convert {} {} --dtype bf16", reference("bloom_safetensors").string(), model.string()));
  ASSERT_EQ(ended.status, 0) << ended.output;
  const Weights written = Weights::open(model);
  for (const WeightEntry& entry : written.entries()) EXPECT_EQ(entry.type, WeightType::kBF16);
  EXPECT_EQ(read_json_file(model / "config.json").at("dtype"), "bfloat16");
}

TEST(Convert, NeverReplacesItsSource) {
  const TestFolder folder;
  const fs::path model = folder.path() / "model", link = folder.path() / "link";
  fs::copy(reference("bloom_safetensors"), model);
  fs::create_directory_symlink(model, link);
  const auto before = contents_of(model);
  for (const std::string& target : {model.string(), model.string() + "/", model.string() + "/../link", link.string(),
                                    (model / "model.safetensors").string()}) {
    const Ended ended = run_tessera(fmt::format("convert {} {} --dtype bf16 --overwrite", model.string(), target));
    EXPECT_EQ(ended.status, 2) << target << ended.output;
    EXPECT_TRUE(contains(ended.output, "is the source itself")) << target << ended.output;
  }
  EXPECT_EQ(contents_of(model), before);
}

TEST(Convert, ReplacesWhatExistsOnlyWhenAsked) {
  const TestFolder folder;
  const std::string source = reference("bloom_bin").string();
  const fs::path model = folder.path() / "model", file = folder.path() / "weights.safetensors";
  fs::copy(reference("bloom_safetensors"), model);
  write_file_atomically(file, "precious");
  const auto before = contents_of(model);
  for (const fs::path& target : {model, file}) {
    const Ended ended = run_tessera(fmt::format("convert {} {}", source, target.string()));
    EXPECT_EQ(ended.status, 2) << ended.output;
    EXPECT_TRUE(contains(ended.output, target.string() + " exists: give the target another name, or --overwrite"))
        << ended.output;
  }
  EXPECT_EQ(contents_of(model), before);
  EXPECT_EQ(read_file(file), "precious");
  for (const fs::path& target : {model, file}) {
    const Ended ended = run_tessera(fmt::format("convert {} {} --dtype bf16 --overwrite", source, target.string()));
    ASSERT_EQ(ended.status, 0) << ended.output;
    const Weights written = Weights::open(target);
    for (const WeightEntry& entry : written.entries()) EXPECT_EQ(entry.type, WeightType::kBF16);
  }
  const fs::path empty = folder.path() / "empty";
  fs::create_directory(empty);
  EXPECT_EQ(run_tessera(fmt::format("convert {} {}", source, empty.string())).status, 0);
}

// A safetensors file holds a tied tensor once and its other names as metadata: all names are back in the end.
TEST(Convert, TiedNamesSurviveBothFormats) {
  const TestFolder folder;
  const std::string once = folder.path() / "a.safetensors", twice = folder.path() / "b.safetensors",
                    bin = folder.path() / "c.bin";
  ASSERT_EQ(run_tessera(fmt::format("convert {} {}", reference("bloom_bin").string(), once)).status, 0);
  ASSERT_EQ(run_tessera(fmt::format("convert {} {}", once, twice)).status, 0);
  ASSERT_EQ(run_tessera(fmt::format("convert {} {}", twice, bin)).status, 0);
  const auto ties = Weights::open(reference("bloom_bin")).ties();
  EXPECT_EQ(Weights::open(once).ties(), ties);
  EXPECT_EQ(Weights::open(twice).ties(), ties);
  EXPECT_EQ(Weights::open(bin).entries().size(), Weights::open(reference("bloom_bin")).entries().size());
}

TEST(Convert, TellsOfValuesThatBecomeInfinite) {
  const TestFolder folder;
  const std::string source = folder.path() / "m.safetensors";
  WeightEntry entry;
  entry.name = "w";
  entry.type = WeightType::kBF16;
  entry.shape = {3};
  entry.numel = 3;
  // 1e5, infinity, 1 in bf16.
  write_file_atomically(source, compose_safetensors_header({entry}, {}) + "\xc3\x47\x80\x7f\x80\x3f");
  const Ended ended = run_tessera(fmt::format("convert {} {}/out.bin --dtype float16", source, folder.path().string()));
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "tensor 'w': 1 of 3 values are beyond float16's range")) << ended.output;
}

TEST(Convert, RefusesWhatCannotBeMeant) {
  const TestFolder folder;
  const std::string source = reference("odd.pth").string(), out = folder.path() / "out";
  const std::pair<std::string, const char*> cases[] = {
      {"convert " + source, "takes two words"},
      {fmt::format("convert {} {}", source, out), "cannot become a model folder"},
      {fmt::format("convert {} {}.bin --format safetensors", source, out), "does not match the target's name"},
      {fmt::format("convert {} {}.gguf", reference("bloom_bin").string(), out),
       "out.gguf: .gguf files are not written; give a name that ends in .safetensors, .bin, .pth or .pt, or the name "
       "of a folder"},
      {fmt::format("convert {} {}.ONNX", source, out), ".onnx files are not written"},
      {fmt::format("convert {} {}.bin --dtype int8", source, out), "int8"},
      {fmt::format("convert {} {}.bin --max_shard_size 0", source, out), "expected a size"},
      {fmt::format("convert {} {}.bin --max_shard_size 1K", source, out), "which is one file; give a folder"},
      {fmt::format("convert {} ''", reference("bloom_bin").string()), "needs a name"},
      {fmt::format("convert {} /dev/null", reference("bloom_bin").string()), "/dev/null exists"},
      {fmt::format("convert {} /dev/null --overwrite", reference("bloom_bin").string()), "it is a file"},
  };
  for (const auto& [arguments, reason] : cases) {
    const Ended ended = run_tessera(arguments);
    EXPECT_EQ(ended.status, 2) << ended.output;
    EXPECT_TRUE(contains(ended.output, reason)) << ended.output;
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace tessera
