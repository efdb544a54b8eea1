// Exact match and F1 of a model's own answers, by greedy generation spread over the ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/text/squad.h"
#include "data/text/token_store.h"
#include "data/tokenizer/tokenizer.h"
#include "model/generation.h"
#include "parallel/engine.h"
#include "tessera/world.h"
#include "train/log_record.h"

namespace tessera {

struct QaPrompt {
  TokenIds ids;                           // up to and with "Answer:"
  std::vector<std::string> gold_answers;  // at least one; "No Answer" where the passage has none
};

// `tokens` are `rows` in label mode `answer`, one for one: what stands before the first counted target is the prompt.
std::vector<QaPrompt> prompts_of(const TokenStore& tokens, const std::vector<SquadRow>& rows);

struct AnswerOptions {
  std::int64_t batch_size = 1;
  std::int64_t max_new_tokens = 50;
  std::vector<std::int64_t> eos_ids;
  // Of a rank, for the whole model in the compute type; nothing: enough.
  std::optional<std::int64_t> memory_bytes{};
};

// Whether every rank can hold the whole model for the time. Collective.
bool can_hold_whole(World& world, Engine& engine, std::optional<std::int64_t> memory_bytes);

// {'exact_match': ..., 'f1': ...} over all prompts, the same on every rank. Collective, between updates. Where every
// rank can hold the whole model, nothing is gathered per token, and ranks need not keep in step; else each token
// gathers unit by unit, and ranks that have done their part go along with the others.
LogRecord answer_metrics(World& world, Engine& engine, LanguageModel& model, const Tokenizer& tokenizer,
                         const std::vector<QaPrompt>& prompts, const AnswerOptions& options);

}  // namespace tessera
