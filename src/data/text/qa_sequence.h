// A question, its passage and its answer as one sequence of tokens, with the target of each position.
//
// The text is `Question: {question} Context: {context} Answer:`, then ` {answer}`: the first answer, or `No Answer`.
// The label mode decides what counts for the loss (more in docs/data.md):
//   answer    the answer and the end token after it. What does not fit into max_length is cut from the context's end;
//             question and answer stay whole.
//   full      every token of the text, which is cut at max_length. No end token is added.
//   padded    as full, then end tokens up to max_length, all counted.
//   separate  only the prompt, cut at max_length; the answer, tokenised alone, is laid over its end (if the tokenizer
//             pads left) or its start (right) and shifted by one, as transformers shifts labels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/squad.h"
#include "data/tokenizer/tokenizer.h"
#include "tessera/ignored_target.h"

namespace tessera {

enum class LabelMode { kAnswer, kFull, kPadded, kSeparate };

const std::vector<std::string>& label_mode_names();  // in the order of the enumeration
LabelMode label_mode_of(const std::string& name);    // throws UsageError with the names
const std::string& name_of(LabelMode mode);
// Why a run in this mode deserves a warning; empty if it does not.
std::string warning_of(LabelMode mode);

struct QaSequence {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> targets;  // the next token where it counts, else kIgnoredTarget. As long as ids.
  bool is_truncated = false;
};

std::string qa_prompt(const SquadRow& row);       // up to and including "Answer:"
std::string_view qa_answer(const SquadRow& row);  // without the space before it

// Immutable, safe from any number of threads; the tokenizer must outlive it.
class QaEncoder {
 public:
  // Throws UsageError if the mode needs an end token that the tokenizer does not name, or max_length is not 1 to 2^20.
  QaEncoder(const Tokenizer& tokenizer, LabelMode mode, std::int64_t max_length);

  // Throws UsageError if question and answer alone exceed max_length in mode `answer`.
  QaSequence encode(const SquadRow& row) const;

 private:
  QaSequence encode_answer(const SquadRow& row) const;
  QaSequence encode_full(const SquadRow& row) const;
  QaSequence encode_separate(const SquadRow& row) const;
  std::vector<std::int32_t> shortened_prompt(const SquadRow& row, std::int64_t num_allowed) const;
  // With the tokens the tokenizer puts before every text, but not those it puts after: more text follows.
  std::vector<std::int32_t> beginning(std::string_view text) const;
  // Cuts text, never the special tokens after it, as transformers does. Returns whether anything was cut.
  bool cut(std::vector<std::int32_t>& ids) const;

  const Tokenizer& tokenizer_;
  LabelMode mode_;
  std::int64_t max_length_;
  std::int32_t end_id_ = -1;
  std::int64_t num_behind_ = 0;  // special tokens the tokenizer puts after a text; BLOOM's and GPT-2's put none
};

}  // namespace tessera
