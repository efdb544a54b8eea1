#include "weights/load_weights.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include <cmath>
#include <limits>

#include "model/language_model.h"
#include "model/parameters.h"
#include "support/cpu_memory.h"
#include "support/shell_module.h"
#include "support/small_decoder_config.h"
#include "support/test_folder.h"
#include "support/weight_files.h"
#include "weights/model_folder.h"
#include "weights/weights.h"
#include "weights/write_model_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

ShellModule shell_of(const Weights& weights, at::ScalarType type, const std::string& prefix = "") {
  ShellModule shell;
  for (const WeightEntry& entry : weights.entries()) {
    shell.add(prefix + entry.name, at::full(entry.shape, -77.0, at::TensorOptions().dtype(type)));
  }
  return shell;
}

void expect_equal(const ShellModule& shell, const Weights& weights, const std::string& prefix = "") {
  for (const auto& item : shell.named_parameters()) {
    const at::Tensor expected = tensor_of(weights, item.key().substr(prefix.size()));
    EXPECT_TRUE(at::equal(item.value(), expected.to(item.value().scalar_type()))) << item.key();
  }
}

TEST(LoadWeights, EveryTensorIsFilledFromEveryFormat) {
  for (const char* name : {"bloom_safetensors", "bloom_sharded", "bloom_bin", "bloom_bin_sharded"}) {
    SCOPED_TRACE(name);
    const Weights weights = Weights::open(reference(name));
    ShellModule shell = shell_of(weights, scalar_type(weights.entries().front().type));
    load_weights(shell, weights);
    expect_equal(shell, weights);
  }
}

TEST(LoadWeights, TypesAreConverted) {
  const Weights weights = Weights::open(reference("bloom_sharded"));
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kDouble}) {
    ShellModule shell = shell_of(weights, type);
    load_weights(shell, weights);
    expect_equal(shell, weights);
  }
}

TEST(LoadWeights, ABaseModelsFileFillsTheModelWithItsHead) {
  const Weights weights = Weights::open(reference("bloom_base"));
  ShellModule shell = shell_of(weights, at::kFloat, "transformer.");
  EXPECT_REFUSED(load_weights(shell, weights), "missing in the file: transformer.");
  load_weights(shell, weights, {.base_model_prefix = "transformer"});
  expect_equal(shell, weights, "transformer.");
}

TEST(LoadWeights, AFileWithTheHeadFillsTheBaseModel) {
  const Weights base = Weights::open(reference("bloom_base"));
  ShellModule shell = shell_of(base, at::kFloat);
  load_weights(shell, Weights::open(reference("bloom_safetensors")), {.base_model_prefix = "transformer"});
  expect_equal(shell, base);  // both were made from one seed
}

TEST(LoadWeights, ATiedHeadInTheFileIsNoMistake) {
  const Weights weights = Weights::open(reference("bloom_bin"));
  ShellModule shell;
  for (const WeightEntry& entry : weights.entries()) {
    if (entry.name != "lm_head.weight") shell.add(entry.name, at::empty(entry.shape));
  }
  EXPECT_REFUSED(load_weights(shell, weights), "unknown to the model: lm_head.weight");
  load_weights(shell, weights, {.ties = {{"lm_head.weight", "transformer.word_embeddings.weight"}}});
  expect_equal(shell, weights);
}

TEST(LoadWeights, ATiedTensorOfTheModelNeedsOneOfItsNames) {
  const Weights weights = Weights::open(reference("bloom_safetensors"));
  ShellModule shell = shell_of(weights, at::kFloat);
  shell.add("lm_head.weight", shell.named_parameters()["transformer.word_embeddings.weight"]);
  load_weights(shell, weights);
  EXPECT_TRUE(
      at::equal(shell.named_parameters()["lm_head.weight"], tensor_of(weights, "transformer.word_embeddings.weight")));
}

TEST(LoadWeights, AllMistakesStandInOneMessageAndNothingIsFilled) {
  const Weights weights = Weights::open(reference("bloom_base"));
  ShellModule shell;
  for (const WeightEntry& entry : weights.entries()) {
    if (entry.name != "ln_f.bias") {
      shell.add(entry.name, at::full(entry.name == "ln_f.weight" ? std::vector<std::int64_t>{17} : entry.shape, -77.0));
    }
  }
  shell.add("extra.weight", at::zeros({1}));
  EXPECT_REFUSED(load_weights(shell, weights),
                 "missing in the file: extra.weight; unknown to the model: ln_f.bias; of another shape: ln_f.weight "
                 "([16] in the file, [17] in the model)");
  EXPECT_EQ(shell.named_parameters()["h.0.input_layernorm.weight"][0].item<float>(), -77);
}

TEST(LoadWeights, BuffersAreFilledAndOldBatchNormsMayLackTheirCount) {
  const Weights weights = Weights::open(reference("batch_norm.pth"));
  torch::nn::Sequential model(torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 3, 3).bias(false)),
                              torch::nn::BatchNorm2d(3));
  load_weights(*model, weights);
  EXPECT_EQ(model->named_buffers()["1.num_batches_tracked"].item<std::int64_t>(), 1);
  EXPECT_TRUE(at::equal(model->named_buffers()["1.running_var"], tensor_of(weights, "1.running_var")));

  const TestFolder folder;
  std::vector<NamedTensor> old;
  for (const WeightEntry& entry : weights.entries()) {
    if (!entry.name.ends_with("num_batches_tracked")) old.push_back({entry.name, tensor_of(weights, entry)});
  }
  write_weights_file(folder.path() / "old.pth", old, {.format = WeightFormat::kTorch});
  model->named_buffers()["1.running_var"].zero_();
  load_weights(*model, Weights::open(folder.path() / "old.pth"));
  EXPECT_EQ(model->named_buffers()["1.num_batches_tracked"].item<std::int64_t>(), 1);  // as it was
  EXPECT_TRUE(at::equal(model->named_buffers()["1.running_var"], tensor_of(weights, "1.running_var")));
}

// The published GPT-2 holds each layer's causal mask, older Llamas the frequencies of their rotary positions.
TEST(LoadLanguageModel, IgnoresBuffersOfOlderFiles) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"gpt2", {"h.0.attn.bias", "h.1.attn.masked_bias"}}, {"llama", {"layers.0.self_attn.rotary_emb.inv_freq"}}};
  for (const auto& [family, buffers] : cases) {
    SCOPED_TRACE(family);
    const TestFolder folder;
    const auto model = make_language_model(small_decoder_config(family));
    initialise(*model, 1);
    std::vector<NamedTensor> tensors;
    for (const auto& item : model->named_parameters()) tensors.push_back({item.key(), item.value().detach()});
    for (const std::string& name : buffers) {
      tensors.push_back({name, at::ones({1, 1, 4, 4})});
      tensors.push_back({model->base_prefix() + "." + name, at::ones({1, 1, 4, 4})});
    }
    write_model_folder(folder.path() / "old", model->config(), tensors);
    const auto loaded = load_language_model(ModelFolder::open(folder.path() / "old"), at::kFloat);
    for (const auto& item : loaded->named_parameters()) {
      EXPECT_TRUE(at::equal(item.value(), model->named_parameters()[item.key()])) << item.key();
    }
    tensors.push_back({"score.weight", at::ones({2, 64})});
    write_model_folder(folder.path() / "other", model->config(), tensors);
    EXPECT_REFUSED(load_language_model(ModelFolder::open(folder.path() / "other"), at::kFloat),
                   "unknown to the model: score.weight");
  }
}

// transformers 5 would keep both, transformers 4 the embedding alone.
TEST(LoadLanguageModel, RefusesAHeadThatIsTiedToAnotherEmbedding) {
  const TestFolder folder;
  const auto model = make_language_model(small_decoder_config("qwen3"));
  initialise(*model, 1);
  std::vector<NamedTensor> tensors;
  for (const auto& item : model->named_parameters()) tensors.push_back({item.key(), item.value().detach()});
  const at::Tensor embedding = model->named_parameters()["model.embed_tokens.weight"].detach();
  tensors.push_back({"lm_head.weight", embedding.clone()});
  write_model_folder(folder.path() / "same", model->config(), tensors);
  load_language_model(ModelFolder::open(folder.path() / "same"), at::kFloat);
  tensors.back().tensor = embedding + 1;
  write_model_folder(folder.path() / "other", model->config(), tensors);
  EXPECT_REFUSED(load_language_model(ModelFolder::open(folder.path() / "other"), at::kFloat),
                 "different in the file: model.embed_tokens.weight and lm_head.weight (\"tie_word_embeddings\": false");
}

TEST(LoadWeights, ManyThreadsAndPiecesGiveTheSameBytes) {
  const TestFolder folder;
  const at::Tensor large = at::randn({3, 1'234'567}), small = at::randn({5});
  write_weights_file(folder.path() / "m.safetensors", {{"small", small}, {"large", large}}, {});
  const Weights weights = Weights::open(folder.path() / "m.safetensors");
  const int num_threads = at::get_num_threads();
  for (const int threads : {1, 3}) {
    at::set_num_threads(threads);
    ShellModule shell = shell_of(weights, at::kFloat);
    load_weights(shell, weights);
    EXPECT_TRUE(at::equal(shell.named_parameters()["large"], large));
    EXPECT_TRUE(at::equal(shell.named_parameters()["small"], small));
  }
  at::set_num_threads(num_threads);
}

// The file's own pages are shared with the system's cache and released piece by piece (bench/folder_bench measures
// them); our own tensors would be the expensive part.
TEST(LoadWeights, MakesNoCopyOfATensor) {
  start_counting_cpu_memory();
  const TestFolder folder;
  write_weights_file(folder.path() / "m.safetensors", {{"a", at::randn({1000, 1000})}, {"b", at::randn({1000})}}, {});
  const Weights weights = Weights::open(folder.path() / "m.safetensors");
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    ShellModule shell = shell_of(weights, type);
    const std::int64_t before = live_cpu_bytes();
    reset_peak_cpu_bytes();
    load_weights(shell, weights);
    EXPECT_EQ(peak_cpu_bytes(), before);
  }
}

TEST(LoadWeights, AParameterOfOtherStridesIsFilled) {
  const Weights weights = Weights::open(reference("batch_norm.pth"));
  ShellModule shell;
  for (const WeightEntry& entry : weights.entries()) {
    const at::Tensor values = tensor_of(weights, entry);
    shell.add(entry.name,
              at::empty_like(entry.name == "0.weight" ? values.contiguous(at::MemoryFormat::ChannelsLast) : values));
  }
  EXPECT_FALSE(shell.named_parameters()["0.weight"].is_contiguous());
  load_weights(shell, weights);
  EXPECT_TRUE(at::equal(shell.named_parameters()["0.weight"], tensor_of(weights, "0.weight")));
}

// Large ones are copied in pieces by several threads; a type that differs is converted; a view is read as one.
TEST(LoadWeights, DamagedValuesAreRefusedWithTheirTensors) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const TestFolder folder;
  const fs::path path = folder.path() / "m.bin";
  at::Tensor large = at::randn({3 << 20}), small = at::randn({7}), view = at::randn({4, 6}).t();
  const auto refused = [&](const std::string& message) {
    write_weights_file(path, {{"large", large}, {"small", small}, {"view", view}}, {.format = WeightFormat::kTorch});
    const Weights weights = Weights::open(path);
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      ShellModule shell = shell_of(weights, type);
      EXPECT_REFUSED(load_weights(shell, weights), path.string() + ": the weights are damaged: " + message);
    }
  };
  small[6] = -inf;
  refused("there are values that are infinite in small;");
  large[(3 << 20) - 1] = nan;
  refused("there are values that are not numbers (NaN) in large, small;");
  view[5][3] = nan;
  refused("there are values that are not numbers (NaN) in large, small, view;");
}

TEST(LoadWeights, AMaskMayBeInfiniteAndNoBufferMayBeNan) {
  struct Masked : torch::nn::Module {
    explicit Masked(const at::Tensor& values) { mask = register_buffer("mask", values); }
    at::Tensor mask;
  };
  const TestFolder folder;
  const fs::path path = folder.path() / "m.safetensors";
  Masked masked(at::zeros({2}));
  write_weights_file(path, {{"mask", at::tensor({0.0F, -std::numeric_limits<float>::infinity()})}}, {});
  load_weights(masked, Weights::open(path));
  EXPECT_TRUE(std::isinf(masked.mask[1].item<float>()));
  write_weights_file(path, {{"mask", at::tensor({0.0F, std::numeric_limits<float>::quiet_NaN()})}}, {});
  EXPECT_REFUSED(load_weights(masked, Weights::open(path)), "not numbers (NaN) in mask;");
}

// Quantised weights without their scales: they would be taken for weights of up to two billion.
TEST(LoadWeights, WholeNumbersAreNoWeights) {
  const TestFolder folder;
  const fs::path path = folder.path() / "m.safetensors";
  write_weights_file(path, {{"w", at::ones({2, 3}, at::kInt)}, {"b", at::ones({3})}}, {});
  const Weights weights = Weights::open(path);
  ShellModule shell = shell_of(weights, at::kFloat);
  EXPECT_REFUSED(
      load_weights(shell, weights),
      "the weights do not fit the model: of another kind of number: w (int32 in the file, float32 in the model)");
  EXPECT_EQ(shell.named_parameters()["b"][0].item<float>(), -77);  // nothing was filled
}

TEST(WeightSource, RefusesADamagedTensorWhenItIsFilled) {
  const TestFolder folder;
  const fs::path path = folder.path() / "m.safetensors";
  write_weights_file(path, {{"good", at::ones({3})}, {"bad", at::full({3}, std::numeric_limits<float>::quiet_NaN())}},
                     {});
  const Weights weights = Weights::open(path);
  ShellModule shell = shell_of(weights, at::kFloat);
  const WeightSource source(shell, weights);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    source.fill("good", at::empty({3}, type));
    EXPECT_REFUSED(source.fill("bad", at::empty({3}, type)), "not numbers (NaN) in bad;");
  }
}

TEST(WeightSource, FillsOneTensorAfterAnotherOfAModelWithoutMemory) {
  for (const char* name : {"bloom_sharded", "bloom_bin"}) {
    SCOPED_TRACE(name);
    const Weights weights = Weights::open(reference(name));
    ShellModule shell;
    for (const WeightEntry& entry : weights.entries()) shell.add(entry.name, at::empty(entry.shape, at::kMeta));
    const WeightSource source(shell, weights);
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      for (const auto& item : shell.named_parameters()) {
        const at::Tensor values = at::full(item.value().sizes(), -77.0, type);
        source.fill(item.key(), values);
        EXPECT_TRUE(at::equal(values, tensor_of(weights, item.key()).to(type))) << item.key();
      }
    }
    EXPECT_REFUSED(source.fill("word_embeddings.wait", at::empty({1})), "no tensor for 'word_embeddings.wait'");
  }
}

TEST(WeightSource, ChecksTheWholeFileFirst) {
  const Weights weights = Weights::open(reference("bloom_sharded"));
  ShellModule shell;
  for (const WeightEntry& entry : weights.entries()) shell.add(entry.name, at::empty(entry.shape, at::kMeta));
  shell.add("more.weight", at::empty({3}, at::kMeta));
  EXPECT_REFUSED(WeightSource(shell, weights), "missing in the file: more.weight");
}

}  // namespace
}  // namespace tessera
