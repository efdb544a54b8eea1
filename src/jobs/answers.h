// A model's own answers by greedy generation spread over the ranks, and their exact match and F1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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
  std::string id;                         // the question's, as the file has it
  TokenIds ids;                           // up to and with "Answer:"
  std::vector<std::string> gold_answers;  // at least one; "No Answer" where the passage has none
};

// `tokens` are `rows` in label mode `answer`, one for one: what stands before the first counted target is the prompt.
std::vector<QaPrompt> prompts_of(const TokenStore& tokens, const std::vector<SquadRow>& rows);

struct AnswerOptions {
  std::int64_t max_new_tokens = 50;
  std::vector<std::int64_t> eos_ids;
  // Of a rank, for the whole model in the compute type; nothing: enough.
  std::optional<std::int64_t> memory_bytes{};
  // Of a rank, beside the model: for the cache, the logits and the widest layer of a batch of prompts.
  std::int64_t batch_bytes = std::int64_t{1} << 30;
};

// Whether every rank has the whole model at hand between uses, too.
bool keeps_whole(const Engine& engine);
// Whether every rank can hold the whole model for the time. Collective.
bool can_hold_whole(World& world, Engine& engine, std::optional<std::int64_t> memory_bytes);

// What rank `rank` of `num_ranks` answers, batch by batch: places in `prompts`. Prompts of like length share a batch,
// long ones first: what does not fit into memory fails at once. A batch has as many as `batch_bytes` allow, one at
// least; more than kMostPrompts gain nothing.
inline constexpr std::size_t kMostPrompts = 128;
std::vector<std::vector<std::size_t>> answer_batches(const std::vector<TokenIds>& prompts, const LanguageModel& model,
                                                     const AnswerOptions& options, int rank, int num_ranks);

// The ids after each prompt, in the order of the prompts, the same on every rank. Collective, between updates. Where
// every rank can hold the whole model, nothing is gathered per token, and ranks need not keep in step; else each token
// gathers unit by unit, and ranks that have done their part go along with the others.
std::vector<TokenIds> answer(World& world, Engine& engine, LanguageModel& model, const std::vector<TokenIds>& prompts,
                             const AnswerOptions& options);

// The same for questions, as text without special tokens.
std::vector<std::string> answer(World& world, Engine& engine, LanguageModel& model, const Tokenizer& tokenizer,
                                const std::vector<QaPrompt>& prompts, const AnswerOptions& options);

// {'exact_match': ..., 'f1': ...}, means over all prompts. Throws Error where there is none.
LogRecord answer_metrics(const std::vector<std::string>& answers, const std::vector<QaPrompt>& prompts);

}  // namespace tessera
