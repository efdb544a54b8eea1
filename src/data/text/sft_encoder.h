// A row of fine-tuning data as tokens, with what counts for the loss, as TRL's SFTTrainer makes them.
//
// Conversations are rendered by the chat template. A row of prompt and completion counts from where prompt and
// completion together go another way than the prompt alone; other rows count as a whole. With `assistant_only` the
// assistant's turns count: what the template marks with {% generation %}, or, where it marks nothing, what each turn
// adds to the text before it, up to its end-of-turn token. More in docs/data.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/rows/row_form.h"
#include "data/templates/chat_template.h"
#include "data/templates/find_chat_template.h"
#include "data/text/encoded_row.h"
#include "data/tokenizer/tokenizer.h"

namespace tessera {

// What happens to the tokens of a row beyond max_length: they are lost, make rows of their own, or stay.
enum class SftOverflow { kCut, kSplit, kKeep };

struct SftOptions {
  std::int64_t max_length = 1024;
  SftOverflow overflow = SftOverflow::kCut;
  bool completion_only = true;  // of rows with a prompt
  bool assistant_only = false;  // of conversations
};

// Immutable, safe from any number of threads; the tokenizer must outlive it.
class SftEncoder {
 public:
  // special_tokens: their texts, as variables of the template. Without a template, conversations are refused, but one
  // instruction and its answer get Alpaca's prompt. Throws UsageError if the template is wrong.
  SftEncoder(const Tokenizer& tokenizer, const std::optional<FoundTemplate>& chat, Json special_tokens,
             SftOptions options);

  // Throws UsageError that says what is wrong with the row. A row of which nothing counts is dropped.
  std::vector<EncodedRow> encode(const TrainingRow& row) const;
  // Everything that decides what encode() gives, besides the tokenizer: for the key of caches.
  std::string description() const;

 private:
  struct Text {
    std::string text;
    std::vector<ByteRange> assistant;   // of conversations, with assistant_only
    std::optional<std::string> prompt;  // the text of the prompt alone
    bool is_rendered = false;           // by the template, with its own special tokens
  };
  Text text_of(const TrainingRow& row) const;
  std::vector<bool> counted(const Text& text, const std::vector<std::int32_t>& ids) const;
  std::string rendered(const TrainingRow& row, const Json& messages, bool asks_for_answer,
                       std::vector<ByteRange>* generated = nullptr) const;
  std::string text_before_answer(const TrainingRow& row, const Json& before) const;
  std::vector<ByteRange> assistant_turns(const TrainingRow& row, const Json& messages, const std::string& whole) const;
  std::size_t end_of_turn(std::string_view turn) const;

  const Tokenizer& tokenizer_;
  std::optional<ChatTemplate> chat_;
  std::string chat_text_;
  Json special_tokens_;
  std::string end_token_;
  SftOptions options_;
};

}  // namespace tessera
