// A model's own answers, generated greedily across the ranks, and their exact match and F1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/log_record.h"
#include "data/text/squad.h"
#include "data/text/token_store.h"
#include "data/tokenizer/tokenizer.h"
#include "model/generation.h"
#include "parallel/engine.h"
#include "tessera/world.h"

namespace tessera {

struct QaPrompt {
  std::string id;                         // the question's id in the file
  TokenIds ids;                           // up to and including "Answer:"
  std::vector<std::string> gold_answers;  // at least one; "No Answer" if the passage has none
};

// `tokens` are `rows` in label mode `answer`, one to one: what precedes the first counted target is the prompt.
std::vector<QaPrompt> prompts_of(const TokenStore& tokens, const std::vector<SquadRow>& rows);

struct AnswerOptions {
  std::int64_t max_new_tokens = 50;
  std::vector<std::int64_t> eos_ids;
  // Per rank, for the whole model in the compute type; none: enough.
  std::optional<std::int64_t> memory_bytes{};
  // Per rank, in addition to the model: for the cache, the logits and the widest layer of a batch of prompts.
  std::int64_t batch_bytes = std::int64_t{1} << 30;
};

// Those limits by the memory that a rank can use besides its current tensors: half of it for the whole model, half of
// the rest for a batch.
AnswerOptions answer_options(const World& world, std::vector<std::int64_t> eos_ids, std::int64_t max_new_tokens);

// Rank 0 logs how a model that is sharded between uses is held while it generates. Collective.
void announce_generation(World& world, Engine& engine);
// Whether every rank can hold the whole model while it generates. Collective.
bool can_hold_whole(World& world, Engine& engine, std::optional<std::int64_t> memory_bytes);

// What rank `rank` of `num_ranks` answers, batch by batch: indices into `prompts`. Prompts of similar length share a
// batch, the longest first: what does not fit into memory fails at once. A batch has as many prompts as `batch_bytes`
// allows, at least one; more than kMostPrompts gain nothing.
inline constexpr std::size_t kMostPrompts = 128;
std::vector<std::vector<std::size_t>> answer_batches(const std::vector<TokenIds>& prompts, const LanguageModel& model,
                                                     const AnswerOptions& options, int rank, int num_ranks);

// The ids after each prompt, in the order of the prompts, the same on every rank. Collective, between updates. If every
// rank can hold the whole model, nothing is gathered per token and ranks do not wait for each other. Otherwise each
// token gathers unit by unit, and ranks that are done keep joining the others' all-gathers.
std::vector<TokenIds> answer(World& world, Engine& engine, LanguageModel& model, const std::vector<TokenIds>& prompts,
                             const AnswerOptions& options);

// The same for questions, as text without special tokens.
std::vector<std::string> answer(World& world, Engine& engine, LanguageModel& model, const Tokenizer& tokenizer,
                                const std::vector<QaPrompt>& prompts, const AnswerOptions& options);

// Exact match and F1 of an answer, as the official SQuAD script computes them (squad_metrics.cc).
//
// Answers are normalised first: lower case, no ASCII punctuation, no articles (a, an, the), one space between words.
// If one side normalises to nothing, both scores are 1 if the other does too, otherwise 0 (the script of SQuAD 2.0).
// Bytes that are not UTF-8 are read as U+FFFD.
std::string normalize_answer(std::string_view answer);

struct AnswerScore {
  double exact_match = 0;  // 0 or 1
  double f1 = 0;           // 0 to 1
};

// Each the best over the gold answers, of which there is at least one (Error otherwise).
AnswerScore score_answer(std::string_view prediction, const std::vector<std::string>& gold_answers);

// {'exact_match': ..., 'f1': ...}, means over all prompts. Throws Error if there are none.
LogRecord answer_metrics(const std::vector<std::string>& answers, const std::vector<QaPrompt>& prompts);

}  // namespace tessera
