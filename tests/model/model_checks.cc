#include "model/model_checks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/generation.h"
#include "model/parameters.h"
#include "model/run_modes.h"
#include "support/pack_padded.h"
#include "support/plain_generation.h"
#include "support/small_language_model.h"

namespace tessera {
namespace {

PackedBatch batch_of(const TensorFile& file, const std::string& side, at::Device device) {
  return pack_padded(file.at("ids_" + side).to(device), file.at("mask_" + side).to(device),
                     file.at("labels_" + side).to(device));
}

double largest_difference(const at::Tensor& value, const at::Tensor& reference) {
  return (value.detach().cpu().to(at::kDouble) - reference.to(at::kDouble)).abs().max().item<double>();
}

double rms_difference(const at::Tensor& value, const at::Tensor& reference) {
  const at::Tensor apart = value.detach().cpu().to(at::kDouble) - reference.to(at::kDouble);
  return std::sqrt(apart.square().mean().item<double>());
}

std::vector<TokenIds> rows_of(const at::Tensor& ids, std::int64_t filler) {
  std::vector<TokenIds> rows;
  for (std::int64_t i = 0; i < ids.size(0); ++i) {
    TokenIds row(ids[i].const_data_ptr<std::int64_t>(), ids[i].const_data_ptr<std::int64_t>() + ids.size(1));
    row.erase(std::find(row.begin(), row.end(), filler), row.end());
    rows.push_back(row);
  }
  return rows;
}

// The real tokens of each row.
std::vector<TokenIds> prompts_of(const TensorFile& file) {
  std::vector<TokenIds> prompts = rows_of(file.at("ids_right"), -1);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    prompts[i].resize(static_cast<std::size_t>(file.at("mask_right")[static_cast<std::int64_t>(i)].sum().item<long>()));
  }
  return prompts;
}

// Every gradient of the mean loss, by name; clears the model's own.
std::map<std::string, at::Tensor> gradients_of(LanguageModel& model, const PackedBatch& batch, UnitRunner& runner) {
  model.zero_grad();
  const kernels::LossSum loss = model.loss(batch, runner);
  (loss.sum / loss.num_counted).backward();
  std::map<std::string, at::Tensor> gradients;
  for (const auto& item : model.named_parameters()) gradients[item.key()] = item.value().grad().clone();
  return gradients;
}

}  // namespace

std::vector<ModelCase> decoder_cases() {
  std::vector<ModelCase> cases;
  const auto add = [&](const std::vector<std::string>& keys, std::initializer_list<const char*> names) {
    for (const char* name : names) cases.push_back({name, keys, 1e-5});
  };
  add({"attention_dropout"}, {"llama",           "llama_tied_biases", "llama_mqa",     "llama_linear",
                              "llama_dynamic",   "llama_rope3",       "llama_yarn",    "llama_yarn_factor",
                              "llama_yarn_full", "mistral",           "mistral_full",  "qwen2",
                              "qwen2_window",    "qwen2_yarn",        "qwen3",         "qwen3_tied",
                              "gemma3",          "gemma3_scaled",     "olmo2",         "olmo3",
                              "olmo3_yarn",      "smollm3",           "smollm3_window"});
  add({"attention_dropout", "resid_pdrop"}, {"phi3", "phi3_partial", "phi3_longrope", "phi3_longrope_partial"});
  add({"attn_pdrop", "resid_pdrop", "embd_pdrop"}, {"gpt2", "gpt2_variants"});
  return cases;
}

const std::vector<ModelCase>& model_cases() {
  static const std::vector<ModelCase> cases = [] {
    const std::vector<std::string> of_bloom{"hidden_dropout", "attention_dropout"}, of_gpt{"dropout"};
    std::vector<ModelCase> all{{"bloom", of_bloom},
                               {"bloom_6_heads", of_bloom},
                               {"bloom_post_norm", of_bloom},
                               {"gpt", of_gpt},
                               {"gpt_learned", of_gpt}};
    for (ModelCase& decoder : decoder_cases()) all.push_back(std::move(decoder));
    return all;
  }();
  return cases;
}

void PrintTo(const ModelCase& model, std::ostream* out) {
  *out << model.name;
}

TensorFile model_reference(const std::string& name) {
  return read_tensor_file(std::string(TESSERA_TEST_DATA_FOLDER) + "/models/" + name + ".safetensors");
}

std::shared_ptr<LanguageModel> model_of(const TensorFile& file, at::Device device, at::ScalarType type) {
  const Json config = parse_json(file.metadata.at("config").get<std::string>(), "the reference's config");
  auto model = make_language_model(config, "the reference's config", at::device(device).dtype(type));
  const at::NoGradGuard no_grad;
  std::size_t num_weights = 0;
  for (auto& item : model->named_parameters()) item.value().copy_(file.at("w." + item.key()));
  for (const auto& [name, tensor] : file.tensors) num_weights += name.starts_with("w.");
  EXPECT_EQ(num_weights, model->named_parameters().size()) << "the reference has other parameters";
  model->eval();
  return model;
}

void check_logits(const ModelCase& which, at::Device device) {
  const TensorFile file = model_reference(which.name);
  const auto model = model_of(file, device);
  UnitRunner runner;
  const at::NoGradGuard no_grad;
  for (const std::string side : {"left", "right"}) {
    if (!file.has("logits_" + side)) continue;
    const at::Tensor logits = model->logits(batch_of(file, side, device), runner);
    EXPECT_LE(largest_difference(logits, file.at("logits_" + side)), which.tolerance) << side;
  }
  // A sequence sees nothing of those it is packed with, and single rows can be asked for.
  std::int64_t begin = 0;
  for (const TokenIds& prompt : prompts_of(file)) {
    const auto length = static_cast<std::int64_t>(prompt.size());
    const at::Tensor last = at::tensor({length - 1}, at::kLong).to(device);
    const at::Tensor alone = model->logits(pack_sequences({prompt}, device), runner, last);
    EXPECT_LE(largest_difference(alone, file.at("logits_right").slice(0, begin + length - 1, begin + length)),
              which.tolerance);
    begin += length;
  }
}

void check_loss_and_gradients(const ModelCase& which, at::Device device) {
  const TensorFile file = model_reference(which.name);
  const auto model = model_of(file, device);
  UnitRunner runner;
  const PackedBatch batch = batch_of(file, "right", device);
  const auto relative = [](double value, double reference) {
    return std::abs(value - reference) / std::abs(reference);
  };
  for (const bool smoothed : {false, true}) {
    kernels::LinearCrossEntropy how;
    how.label_smoothing = smoothed ? 0.1 : 0;
    const kernels::LossSum loss = model->loss(batch, runner, how);
    const double reference = file.at(smoothed ? "loss_sum_smoothed" : "loss_sum").item<float>();
    EXPECT_LE(relative(loss.sum.item<float>(), reference), 1e-4) << (smoothed ? "smoothed" : "plain");
    EXPECT_EQ(loss.num_counted, file.at("num_counted").item<std::int64_t>());
    EXPECT_EQ(batch.num_counted, loss.num_counted);
  }
  CheckpointRunner checkpointed(runner);
  for (UnitRunner* way : {&runner, static_cast<UnitRunner*>(&checkpointed)}) {
    const auto gradients = gradients_of(*model, batch, *way);
    for (const auto& [name, gradient] : gradients) {
      const at::Tensor& reference = file.at("g." + name);
      EXPECT_LE(largest_difference(gradient, reference), 1e-4 * reference.abs().max().item<double>()) << name;
    }
  }
}

void check_bf16_logits(at::Device device) {
  const TensorFile file = model_reference("bloom");
  const auto model = model_of(file, device, at::kBFloat16);
  UnitRunner runner;
  const at::NoGradGuard no_grad;
  const at::Tensor logits = model->logits(batch_of(file, "right", device), runner);
  EXPECT_EQ(logits.scalar_type(), at::kBFloat16);
  const at::Tensor& reference = file.at("logits_right");
  const double theirs = rms_difference(file.at("logits_bf16"), reference);
  EXPECT_LE(rms_difference(logits, reference), 1.1 * theirs);
  EXPECT_LE(largest_difference(logits, reference), 1.5 * largest_difference(file.at("logits_bf16"), reference));
}

Bf16Errors check_bf16_gradients(const ModelCase& which, at::Device device) {
  const TensorFile file = model_reference(which.name);
  const auto model = model_of(file, device, at::kBFloat16);
  UnitRunner runner;
  const kernels::LossSum loss = model->loss(batch_of(file, "right", device), runner);
  EXPECT_NEAR(loss.sum.item<float>() / file.at("loss_sum").item<float>(), 1, 0.01);
  Bf16Errors sum;
  for (const auto& [name, gradient] : gradients_of(*model, batch_of(file, "right", device), runner)) {
    const at::Tensor& reference = file.at("g." + name);
    const double size = std::sqrt(reference.to(at::kDouble).square().mean().item<double>());
    const double error = rms_difference(gradient, reference) / size,
                 theirs = file.at("bf16_error." + name).item<float>();
    // For a single tensor, and less so for a model whose tensors share the rounding of one forward pass, this compares
    // one draw of rounding errors with another; the sum over all models has a tighter limit. A vector here has as few
    // as 8 numbers: one draw in 300 is three times as large as another. The gradient of a key's bias is what is left of
    // a sum that nearly cancels.
    const double limit = reference.dim() > 1 ? 2 : name.ends_with("k_proj.bias") ? 4 : 3;
    EXPECT_LE(error, limit * theirs) << name;
    sum.ours += error;
    sum.theirs += theirs;
  }
  EXPECT_LE(sum.ours, 1.5 * sum.theirs);
  return sum;
}

void check_all_bf16_gradients(at::Device device) {
  Bf16Errors all;
  for (const ModelCase& each : model_cases()) {
    SCOPED_TRACE(each.name);
    const Bf16Errors errors = check_bf16_gradients(each, device);
    all.ours += errors.ours / errors.theirs;  // each model counts alike
    all.theirs += 1;
  }
  EXPECT_LE(all.ours, 1.1 * all.theirs);
}

void check_greedy_generation(at::Device device) {
  const TensorFile file = model_reference("bloom_generation");
  const auto model = model_of(file, device);
  UnitRunner runner;
  GenerationOptions options;
  options.max_new_tokens = file.at("greedy_free").size(1);
  const std::vector<TokenIds> prompts = prompts_of(file);
  for (const char* which : {"greedy_free", "greedy"}) {
    options.eos_ids.clear();
    if (which == std::string("greedy")) options.eos_ids = {file.at("greedy_eos").item<std::int64_t>()};
    EXPECT_EQ(generate(*model, prompts, options, runner), rows_of(file.at(which), -1)) << which;
    EXPECT_EQ(generate_plainly(*model, prompts, options.max_new_tokens, options.eos_ids, runner),
              rows_of(file.at(which), -1))
        << which;
  }
}

void check_greedy_rows(const ModelCase& which, at::Device device) {
  const TensorFile file = model_reference(which.name);
  const auto model = model_of(file, device);
  UnitRunner runner;
  GenerationOptions options;
  const at::Tensor& expected = file.at(file.has("greedy_cached") ? "greedy_cached" : "greedy_free");
  options.max_new_tokens = expected.size(1);
  const std::vector<TokenIds> prompts = prompts_of(file), all = rows_of(expected, -1);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(generate(*model, {prompts[i]}, options, runner), (std::vector<TokenIds>{all[i]})) << i;
  }
  EXPECT_EQ(generate(*model, prompts, options, runner), all) << "together";
}

void check_step_logits(const ModelCase& which, at::Device device) {
  const TensorFile file = model_reference(which.name);
  const auto model = model_of(file, device);
  UnitRunner runner;
  // Rows that turn their first tokens as the whole row does: here the cache gives the logits of the whole row.
  std::vector<TokenIds> whole;
  std::vector<std::int64_t> begins;
  std::int64_t begin = 0;
  for (const TokenIds& row : prompts_of(file)) {
    const bool is_plain = std::ranges::all_of(model->shape().rotaries, [&](const Rotary& rotary) {
      const bool depends_on_length = rotary.kind == RotaryKind::kDynamic || rotary.kind == RotaryKind::kLongRope;
      return !depends_on_length || static_cast<double>(row.size()) <= rotary.original_positions;
    });
    if (is_plain) whole.push_back(row), begins.push_back(begin);
    begin += std::ssize(row);
  }
  ASSERT_GE(whole.size(), 3u);
  // Half of each as a prompt, then its tokens one by one.
  std::vector<TokenIds> prompts;
  for (const TokenIds& row : whole) {
    prompts.emplace_back(row.begin(), row.begin() + static_cast<std::ptrdiff_t>((row.size() + 1) / 2));
  }
  KeyValueCache cache = model->make_cache(static_cast<std::int64_t>(whole.size()), 32);
  at::Tensor logits = model->prefill(pack_sequences(prompts, device), cache, runner);
  for (std::size_t count = 0;; ++count) {
    TokenIds next;
    bool any = false;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const std::size_t last = prompts[i].size() + count - 1;
      if (last < whole[i].size()) {
        const at::Tensor& reference = file.at("logits_right")[begins[i] + static_cast<std::int64_t>(last)];
        EXPECT_LE(largest_difference(logits[static_cast<std::int64_t>(i)], reference), 1e-4) << i << ", " << last;
      }
      any |= last + 1 < whole[i].size();
      next.push_back(last + 1 < whole[i].size() ? whole[i][last + 1] : 0);
    }
    if (!any) return;
    logits = model->next_logits(at::tensor(next, at::kLong).to(device), cache, runner);
  }
}

void check_dropout_and_checkpointing(const ModelCase& which, at::Device device, at::ScalarType type) {
  TensorFile file = model_reference(which.name);
  Json config = parse_json(file.metadata.at("config").get<std::string>(), "config");
  for (const std::string& key : which.dropout_keys) config[key] = key.starts_with("att") ? 0.3 : 0.2;
  file.metadata["config"] = config.dump();
  const auto model = model_of(file, device, type);
  UnitRunner runner;
  CheckpointRunner checkpointed(runner);
  const PackedBatch batch = batch_of(file, "right", device);
  const auto gradients = [&](std::uint64_t seed, UnitRunner& way) {
    model->set_dropout_seed(seed);
    return gradients_of(*model, batch, way);
  };
  const auto equal = [](const auto& a, const auto& b) {
    return std::all_of(a.begin(), a.end(), [&](const auto& item) { return at::equal(item.second, b.at(item.first)); });
  };
  const auto without = gradients(1, runner);
  EXPECT_TRUE(equal(without, gradients(2, runner))) << "eval mode has no dropout";
  model->train();
  const auto first = gradients(1, runner);
  EXPECT_FALSE(equal(first, without)) << "training mode has dropout";
  EXPECT_FALSE(equal(first, gradients(2, runner))) << "another seed gives other masks";
  EXPECT_TRUE(equal(first, gradients(1, runner))) << "the same seed gives the same masks";
  EXPECT_TRUE(equal(first, gradients(1, checkpointed))) << "the masks are drawn alike when a unit is computed again";
}

namespace {

// Heads of 64 as in BLOOM-560M, so that the per-row statistics weigh as little as there.
std::shared_ptr<LanguageModel> wide_model(const std::string& type, double dropout, const at::TensorOptions& options) {
  Json config = {{"model_type", type}, {"vocab_size", 50}, {"hidden_size", 256}};
  if (type == "bloom" || type == "tessera-gpt") {
    const bool bloom = type == "bloom";
    config[bloom ? "n_head" : "num_heads"] = 4;
    config[bloom ? "n_layer" : "num_layers"] = 4;
    config[bloom ? "hidden_dropout" : "dropout"] = dropout;
    if (!bloom) config["ff_dim"] = 512;
  } else {
    config["num_hidden_layers"] = config["num_attention_heads"] = 4;
    config["num_key_value_heads"] = 2;
    config["head_dim"] = 64;
    config["intermediate_size"] = 512;
    config["pad_token_id"] = nullptr;
  }
  auto model = make_language_model(config, "test", options);
  initialise(*model, 1);
  return model;
}

void check_activation_memory(LanguageModel& model, const std::function<std::int64_t()>& live_bytes) {
  std::vector<TokenIds> sequences;
  for (const std::size_t length : {200, 300, 12}) sequences.emplace_back(length, 7);
  const PackedBatch batch = pack_sequences(sequences, model.device());
  UnitRunner plain;
  CheckpointRunner checkpointed(plain);
  const auto kept = [&](UnitRunner& runner) {
    const std::int64_t before = live_bytes();
    const at::Tensor hidden = model.hidden_states(batch, runner);
    return live_bytes() - before;
  };
  (void)kept(plain);  // what is allocated once and stays
  const std::int64_t whole = kept(plain), less = kept(checkpointed);
  const auto calculated = static_cast<double>(4 * bytes_kept_by_unit(model, 512));
  EXPECT_NEAR(static_cast<double>(whole - less), calculated, 0.01 * calculated);
  // With checkpointing: each unit's input, and what the root keeps.
  const std::int64_t input_bytes = 512 * 256 * static_cast<std::int64_t>(c10::elementSize(model.dtype()));
  EXPECT_LE(less, (4 + 4) * input_bytes);
}

}  // namespace

void check_activation_memory(at::Device device, at::ScalarType compute,
                             const std::function<std::int64_t()>& live_bytes) {
  for (const std::string type : {"bloom", "tessera-gpt"}) {
    for (const double dropout : {0.0, 0.1}) {
      SCOPED_TRACE(type + " with dropout " + std::to_string(dropout));
      check_activation_memory(*wide_model(type, dropout, at::device(device).dtype(compute)), live_bytes);
    }
  }
  for (const std::string type : {"llama", "qwen3", "gemma3_text"}) {
    SCOPED_TRACE(type);
    check_activation_memory(*wide_model(type, 0, at::device(device).dtype(compute)), live_bytes);
  }
}

}  // namespace tessera
