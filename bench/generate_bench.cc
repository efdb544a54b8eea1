// Generates answers as evaluations do (jobs/answers.h: batches by length, a cache of keys and values), against a plain
// loop: one prompt at a time, every token recomputed at each step. Both greedy, 50 new tokens, the same model.
//
// BLOOM-560M's sizes on a GPU if there is one, else a small BLOOM on the CPU; random weights, SQuAD's lengths.
//   generate_bench            the comparison, and marks
//   generate_bench batches    time per prompt, by the number of prompts per batch
//
// Exit status 3: a mark was missed; 1: the answers differ.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "comm/gpu_support.h"
#include "core/error.h"
#include "jobs/answers.h"
#include "model/families/bloom.h"
#include "model/parameters.h"
#include "squad_like.h"
#include "support/plain_generation.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kNewTokens = 50;
constexpr double kLeastSpeedup = 20;
constexpr int kRounds = 4;
// Logits closer than this are a tie: rounding decides it, and differs with the order of sums.
double tie_of(at::ScalarType type) {
  return type == at::kFloat ? 1e-3 : 0.1;
}

BloomConfig config_for(bool on_gpu) {
  BloomConfig config;
  config.vocab_size = on_gpu ? 250880 : 8192;
  config.hidden_size = on_gpu ? 1024 : 256;
  config.num_layers = on_gpu ? 24 : 4;
  config.num_heads = on_gpu ? 16 : 8;
  config.tie_word_embeddings = false;  // tied and untrained, it would repeat the last token
  return config;
}

// `copies` prompts of each length.
std::vector<TokenIds> prompts_for(std::int64_t copies, std::int64_t vocab_size) {
  std::vector<TokenIds> prompts;
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    for (TokenIds& ids : squad_like_sequences(vocab_size)) {
      for (std::int64_t& id : ids) id = (id + 7919 * copy) % vocab_size;
      prompts.push_back(std::move(ids));
    }
  }
  return prompts;
}

template <typename Work>
double seconds_of(const World& world, const Work& work) {
  const auto wait = [&] {
    if (world.device().is_cuda()) gpu_support()->synchronize();
  };
  wait();
  const auto begin = Clock::now();
  work();
  wait();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Whether two answers first differ where the model itself is undecided.
bool part_at_a_tie(LanguageModel& model, TokenIds sequence, const TokenIds& one, const TokenIds& other) {
  const auto [at_one, at_other] = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  sequence.insert(sequence.end(), one.begin(), at_one);
  UnitRunner runner;
  const at::NoGradGuard no_gradients;
  const PackedBatch batch = pack_sequences({sequence}, model.device());
  const at::Tensor last = at::tensor({std::ssize(sequence) - 1}, at::kLong).to(model.device());
  const at::Tensor logits = model.logits(batch, runner, last).to(at::kCPU, at::kDouble).flatten();
  return std::abs(logits[*at_one].item<double>() - logits[*at_other].item<double>()) < tie_of(model.dtype());
}

struct Compared {
  double slow_seconds = 0, fast_seconds = 0;  // per prompt
  std::size_t num_equal = 0, num_tied = 0, num_different = 0;
};

Compared compare(World& world, Engine& engine, LanguageModel& model, const std::vector<TokenIds>& prompts,
                 const std::vector<TokenIds>& few) {
  AnswerOptions options;
  options.max_new_tokens = kNewTokens;
  options.batch_bytes = std::int64_t{8} << 30;
  UnitRunner runner;
  std::vector<TokenIds> fast = answer(world, engine, model, prompts, options), slow;  // also warms up
  if (world.device().is_cuda()) generate_plainly(model, {few.front()}, kNewTokens, {}, runner);
  Compared result;
  const std::size_t share = few.size() / kRounds;
  for (std::size_t round = 0; round < kRounds; ++round) {  // alternates, so that noise hits both
    result.slow_seconds += seconds_of(world, [&] {
      for (std::size_t i = round * share; i < (round + 1) * share; ++i) {
        slow.push_back(generate_plainly(model, {few[i]}, kNewTokens, {}, runner).front());
      }
    });
    result.fast_seconds += seconds_of(world, [&] { fast = answer(world, engine, model, prompts, options); });
  }
  result.slow_seconds /= static_cast<double>(slow.size());
  result.fast_seconds /= static_cast<double>(kRounds * prompts.size());
  for (std::size_t i = 0; i < slow.size(); ++i) {
    const bool is_equal = slow[i] == fast[i];
    const bool is_tied = !is_equal && part_at_a_tie(model, few[i], slow[i], fast[i]);
    ++(is_equal ? result.num_equal : is_tied ? result.num_tied : result.num_different);
  }
  return result;
}

void print_batches(World& world, LanguageModel& model, const std::vector<TokenIds>& prompts) {
  GenerationOptions options;
  options.max_new_tokens = kNewTokens;
  UnitRunner runner;
  for (const std::size_t count : {1, 4, 16, 32, 64, 128, 256}) {
    if (count > prompts.size()) break;
    const std::vector<TokenIds> batch(prompts.begin(), prompts.begin() + static_cast<std::ptrdiff_t>(count));
    generate(model, batch, options, runner);
    const double seconds = seconds_of(world, [&] { generate(model, batch, options, runner); });
    fmt::print("{:>4} prompts a batch: {:8.2f} ms a prompt\n", count, 1e3 * seconds / static_cast<double>(count));
  }
}

// Returns 0, 3 if the mark is missed, or 1 if answers differ.
int run_in(World& world, at::ScalarType type, const std::string& what) {
  const bool on_gpu = world.device().is_cuda();
  const BloomConfig config = config_for(on_gpu);
  const auto made = make_language_model(config.to_json(), "the benchmark", at::device(world.device()));
  LanguageModel& model = *made;
  initialise(model, 1);
  model.eval();
  EngineOptions options;
  options.spread.strategy = "single";
  options.types = {type, type, false};
  options.device = world.device();
  Engine engine(world, model, model.units(), options);
  // The first prompts, one of each length, are also answered one by one.
  const std::vector<TokenIds> prompts = prompts_for(on_gpu ? 16 : 8, config.vocab_size);
  const std::vector<TokenIds> few(prompts.begin(), prompts.begin() + std::ssize(kSquadLikeLengths));
  const char* name = type == at::kFloat ? "float32" : "bfloat16";
  fmt::print("BLOOM, {} layers, hidden {}, vocabulary {}, {}, on {}; prompts of {} to {} tokens, {} new ones each\n",
             config.num_layers, config.hidden_size, config.vocab_size, name, world.device().str(),
             kSquadLikeLengths.front(), kSquadLikeLengths.back(), kNewTokens);
  if (what == "batches") {
    print_batches(world, model, prompts);
    return 0;
  }
  const Compared found = compare(world, engine, model, prompts, few);
  fmt::print("one prompt at a time, without a cache ({} prompts): {:9.2f} ms a prompt\n", few.size(),
             1e3 * found.slow_seconds);
  fmt::print("as evaluations do it ({} prompts, {} times):        {:9.2f} ms a prompt\n", prompts.size(), kRounds,
             1e3 * found.fast_seconds);
  fmt::print("answers: {} equal, {} part at a tie of two logits, {} differ\n", found.num_equal, found.num_tied,
             found.num_different);
  if (found.num_different > 0) return 1;
  const double speedup = found.slow_seconds / found.fast_seconds;
  fmt::print(
      "mark: generation in {} against one prompt at a time without a cache: {:.1f} times (at least {:.0f}): {}\n", name,
      speedup, kLeastSpeedup, speedup >= kLeastSpeedup ? "met" : "missed");
  return speedup >= kLeastSpeedup ? 0 : 3;
}

int run(World& world, const std::string& what) {
  const int status = run_in(world, at::kFloat, what);
  if (!world.device().is_cuda() || status == 1) return status;
  const int half = run_in(world, at::kBFloat16, what);
  return half == 0 ? status : half;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  tessera::WorldOptions options;
  options.banner = false;
  return tessera::run_rank(options, [&](tessera::World& world) { return tessera::run(world, what); });
}
