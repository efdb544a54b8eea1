// A summary of a text data set in numbers, for people and for scripts.
#pragma once

#include <cstdint>
#include <string>

#include "core/json.h"
#include "data/text/squad.h"
#include "data/text/token_rows.h"

namespace tessera {

// About the file itself, without a tokenizer.
struct SquadSummary {
  std::string form, version;
  std::int64_t num_rows = 0, num_articles = 0, num_contexts = 0, num_answers = 0;
  std::int64_t num_unanswered = 0;  // questions without an answer
  std::int64_t num_repeated = 0;    // rows with the id of an earlier row
  std::int64_t num_misplaced = 0;   // answers that are not in the context where the file says
};
SquadSummary summarise(const SquadFile& file);

// About its tokens. Shares are of the positions that padding would make, which are not computed here.
struct TokenSummary {
  TokenCounts counts;
  std::int64_t max_length = 0;
  std::int64_t median_length = 0;
  std::int64_t batch_size = 0;
  double padding_to_max_length = 0;  // share avoided, if every row were padded to max_length
  double padding_to_longest = 0;     // if each batch of batch_size rows were padded to its longest
  std::int64_t batch_tokens = 0;     // 0: not requested
  std::int64_t num_groups_in_order = 0, num_groups_tight = 0;
};
// `batch_tokens` 0: no packing into groups. Throws UsageError if a row exceeds it.
TokenSummary summarise(const TokenRows& tokens, std::int64_t max_length, std::int64_t batch_size,
                       std::int64_t batch_tokens);

std::string summary_text(const SquadSummary& summary);
std::string summary_text(const TokenSummary& summary);
Json summary_json(const SquadSummary& summary);
Json summary_json(const TokenSummary& summary);

}  // namespace tessera
