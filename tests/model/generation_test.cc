#include "model/generation.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "core/error.h"
#include "support/contains.h"
#include "support/cpu_memory.h"
#include "support/plain_generation.h"
#include "support/small_language_model.h"

namespace tessera {
namespace {

const std::vector<TokenIds> kPrompts = {{1, 2, 3}, {4}, {5, 6, 7, 8, 9, 10, 11}, {12, 13}};

std::string refusal(LanguageModel& model, const std::vector<TokenIds>& prompts, const GenerationOptions& options) {
  UnitRunner runner;
  try {
    generate(model, prompts, options, runner);
    return {};
  } catch (const UsageError& error) {
    return error.what();
  }
}

// Its continuations do not repeat one token over and over.
std::shared_ptr<LanguageModel> talkative_bloom() {
  return small_bloom(0, 3, /*is_tied=*/false);
}

TEST(PackSequences, RefusesNoneAndEmptyOnes) {
  const auto message = [](const std::vector<TokenIds>& sequences) -> std::string {
    try {
      pack_sequences(sequences, at::kCPU);
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_TRUE(contains(message({{1}, {}}), "sequence 1 is empty"));
  EXPECT_TRUE(contains(message({}), "no sequences"));
}

TEST(Generation, ABatchGivesWhatEachPromptGivesAlone) {
  const std::shared_ptr<LanguageModel> models[] = {talkative_bloom(), small_gpt()};
  UnitRunner runner;
  for (const auto& model : models) {
    GenerationOptions options;
    options.max_new_tokens = 12;
    const auto together = generate(*model, kPrompts, options, runner);
    EXPECT_EQ(generate_plainly(*model, kPrompts, options.max_new_tokens, {}, runner), together);
    for (std::size_t i = 0; i < kPrompts.size(); ++i) {
      EXPECT_EQ(generate(*model, {kPrompts[i]}, options, runner).front(), together[i]) << i;
    }
  }
}

// Each sequence of the batch ends at its own position, whichever ended before it.
TEST(Generation, EndsWithTheFirstEndTokenOfEachSequence) {
  const auto model = talkative_bloom();
  UnitRunner runner;
  GenerationOptions options;
  options.max_new_tokens = 15;
  const auto free = generate(*model, kPrompts, options, runner);
  std::set<std::int64_t> distinct;
  for (const TokenIds& ids : free) distinct.insert(ids.begin(), ids.end());
  EXPECT_GT(distinct.size(), 8u) << "nothing would end in the middle";
  for (std::int64_t eos = 0; eos < 50; ++eos) {
    options.eos_ids = {eos, 49 - eos};
    const auto ended = generate(*model, kPrompts, options, runner);
    for (std::size_t i = 0; i < free.size(); ++i) {
      TokenIds expected;
      for (const std::int64_t id : free[i]) {
        expected.push_back(id);
        if (id == eos || id == 49 - eos) break;
      }
      EXPECT_EQ(ended[i], expected) << eos << ", " << i;
    }
  }
}

TEST(Generation, DrawsAreAFunctionOfTheSeed) {
  const auto model = small_gpt();
  UnitRunner runner;
  GenerationOptions options;
  options.sampling.do_sample = true;
  options.seed = 3;
  const auto first = generate(*model, kPrompts, options, runner);
  EXPECT_EQ(generate(*model, kPrompts, options, runner), first);
  options.seed = 4;
  EXPECT_NE(generate(*model, kPrompts, options, runner), first);
  options.sampling.top_k = 1;  // leaves only the best
  const auto best = generate(*model, kPrompts, options, runner);
  options.sampling.do_sample = false;
  EXPECT_EQ(generate(*model, kPrompts, options, runner), best);
}

TEST(Generation, LeavesTheModelInItsMode) {
  const auto model = small_bloom(0.5);
  UnitRunner runner;
  const auto first = generate(*model, kPrompts, {}, runner);
  EXPECT_TRUE(model->is_training());
  model->set_dropout_seed(8);
  EXPECT_EQ(generate(*model, kPrompts, {}, runner), first) << "dropout is off while generating";
}

TEST(Generation, TheCacheTakesItsMemoryOnce) {
  start_counting_cpu_memory();
  const auto model = small_bloom();
  UnitRunner runner;
  const std::int64_t before = live_cpu_bytes();
  KeyValueCache cache = model->make_cache(4, 64);
  constexpr std::int64_t kBytes = 2 * 3 * 4 * 64 * 64 * 4;
  EXPECT_EQ(live_cpu_bytes() - before, kBytes);
  model->prefill(pack_sequences(kPrompts, at::kCPU), cache, runner);
  const auto step = [&] { model->next_logits(at::tensor({1, 2, 3, 4}, at::kLong), cache, runner); };
  step();
  const std::int64_t after_one = live_cpu_bytes();
  reset_peak_cpu_bytes();
  for (int i = 0; i < 20; ++i) step();
  EXPECT_LT(live_cpu_bytes() - after_one, 64 * 1024) << "only the bias of one step grows";
  EXPECT_LT(peak_cpu_bytes() - after_one, kBytes / 2) << "no layer's cache is copied";
}

TEST(Generation, AGrownCacheGivesTheSameBits) {
  const auto model = talkative_bloom();
  UnitRunner runner;
  KeyValueCache wide = model->make_cache(4, 20), grown = model->make_cache(4, 7);
  const PackedBatch prompts = pack_sequences(kPrompts, at::kCPU);
  EXPECT_TRUE(at::equal(model->prefill(prompts, wide, runner), model->prefill(prompts, grown, runner)));
  grown.grow(20);
  EXPECT_EQ(grown.capacity(), wide.capacity());
  for (int i = 0; i < 13; ++i) {
    const at::Tensor ids = at::full({4}, i, at::kLong);
    EXPECT_TRUE(at::equal(model->next_logits(ids, wide, runner), model->next_logits(ids, grown, runner))) << i;
  }
}

TEST(Generation, GoesOnWhenTheCacheIsFull) {
  const auto model = small_bloom(0, 1, /*is_tied=*/false);
  UnitRunner runner;
  GenerationOptions options;
  options.max_new_tokens = 300;  // more than the cache first has room for
  const auto cached = generate(*model, {{1, 2, 3}}, options, runner);
  EXPECT_EQ(cached.front().size(), 300u);
  EXPECT_EQ(generate_plainly(*model, {{1, 2, 3}}, options.max_new_tokens, {}, runner), cached);
}

TEST(Generation, TextThatEndsTakesNoMemoryForAGenerousLimit) {
  start_counting_cpu_memory();
  const auto model = talkative_bloom();
  UnitRunner runner;
  GenerationOptions options;
  options.max_new_tokens = 1;
  options.eos_ids = generate(*model, {{1}}, options, runner).front();
  options.max_new_tokens = 1'000'000;
  reset_peak_cpu_bytes();
  const std::int64_t before = live_cpu_bytes();
  EXPECT_EQ(generate(*model, {{1}}, options, runner).front().size(), 1u);
  EXPECT_LT(peak_cpu_bytes() - before, 4 << 20) << "1.5 GB if all of it were allocated";
}

TEST(Generation, LogitsThatAreNotFiniteAreToldOf) {
  const auto model = small_bloom();
  model->named_parameters()["transformer.ln_f.bias"].detach()[3] = std::numeric_limits<float>::quiet_NaN();
  UnitRunner runner;
  GenerationOptions options;
  for (const bool do_sample : {false, true}) {
    options.sampling.do_sample = do_sample;
    try {
      generate(*model, kPrompts, options, runner);
      ADD_FAILURE() << "tokens from NaN";
    } catch (const Error& error) {
      EXPECT_TRUE(contains(error.what(), "prompt 0 the model's logits are NaN or infinite"));
    }
  }
}

TEST(Generation, RefusesWhatCannotBe) {
  const auto model = small_bloom();
  GenerationOptions options;
  EXPECT_TRUE(contains(refusal(*model, {{1}, {}}, options), "prompt 1 has no tokens"));
  EXPECT_TRUE(contains(refusal(*model, {{1, 50}}, options), "token 50, which is beyond the model's vocabulary of 50"));
  EXPECT_TRUE(contains(refusal(*model, {{-1}}, options), "token -1"));
  options.max_new_tokens = 0;
  EXPECT_TRUE(contains(refusal(*model, {{1}}, options), "max_new_tokens 0"));
  options = {};
  options.sampling.temperature = 0;
  EXPECT_TRUE(contains(refusal(*model, {{1}}, options), "temperature 0"));
  options = {};
  options.sampling.top_p = 1.5;
  EXPECT_TRUE(contains(refusal(*model, {{1}}, options), "top_p 1.5"));
  GptConfig config;
  config.vocab_size = 20;
  config.hidden_size = 8;
  config.num_heads = 2;
  config.ff_dim = 8;
  config.seq_length = 6;
  config.learned_positions = true;
  const auto made = make_language_model(config.to_json());
  LanguageModel& bounded = *made;
  initialise(bounded, 1);
  options = {};
  options.max_new_tokens = 5;
  EXPECT_TRUE(contains(refusal(bounded, {{1, 2, 3}}, options), "the model has positions for 6"));
  EXPECT_EQ(refusal(bounded, {{1, 2}}, options), "") << "the last token needs no position";
}

}  // namespace
}  // namespace tessera
