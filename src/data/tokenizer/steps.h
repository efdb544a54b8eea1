// The steps around the model, as a tokenizer file lists them: what changes a text, splits it, adds tokens around it,
// and turns tokens back into text. All are constant and safe from any thread. Steps that are not supported are refused
// by name; null gives none.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_reader.h"
#include "data/tokenizer/pattern.h"

namespace tessera::internal {

// Changes a text before it is split: Unicode normal forms, lower case, replacements. Texts are well-formed UTF-8,
// before and after.
using Normalizer = std::function<void(std::string& text)>;
// NFC, NFD, NFKC, NFKD, Lowercase, Strip, Replace, Prepend and Sequence.
Normalizer read_normalizer(const JsonReader& component);

// The pieces of one text as they pass through the pre-tokenizers, and buffers that these share. The model then merges
// each piece separately.
struct Pieces {
  std::vector<std::string_view> views;  // of the caller's text or of `made`; none is empty
  std::vector<std::string_view> next;
  std::vector<Match> matches;
  std::deque<std::string> made;  // text that a step made
  bool has_beginning = true;     // the first view is the beginning of the caller's whole text

  // `is_beginning`: no other part of the caller's text is before this one.
  void begin(std::string_view text, bool is_beginning) {
    views.clear();
    made.clear();
    has_beginning = is_beginning;
    if (!text.empty()) views.push_back(text);
  }
};

struct PreTokenizers {
  std::vector<std::function<void(Pieces&)>> steps;
  // The last step of the file turns bytes into the characters that stand for them. We then leave the pieces as they
  // are, and the model reads bytes.
  bool ends_in_bytes = false;
  bool asks_for_beginning = false;  // a step needs Pieces::has_beginning
  bool puts_text_in_front = false;  // a step may begin a piece with a mark or a space

  void add_byte_level(bool add_prefix_space, bool use_regex);
  // The step that `ends_in_bytes` saves, for models that need characters and for steps that follow.
  void add_byte_mapper();
};
// Split, ByteLevel, Metaspace, Digits, Whitespace, WhitespaceSplit and Sequence.
PreTokenizers read_pre_tokenizers(const JsonReader& component);

// What is added around the tokens of a text: <s> ... </s> and the like. For one text (not a pair): a list of tokens to
// add, with kText where the text's own tokens go.
struct PostProcessor {
  static constexpr std::int32_t kText = -1;
  std::vector<std::int32_t> single = {kText};

  // As in the original: without special tokens, every kText still counts.
  std::vector<std::int32_t> apply(std::vector<std::int32_t> ids, bool add_special_tokens) const;
};
// TemplateProcessing, ByteLevel, RobertaProcessing, BertProcessing and Sequence.
PostProcessor read_post_processor(const JsonReader& component);

// Tokens back to text. Tokens are well-formed UTF-8, before and after.
using Decoder = std::function<void(std::vector<std::string>& tokens)>;
// ByteLevel, ByteFallback, Fuse, Metaspace, Replace, Strip and Sequence.
Decoder read_decoder(const JsonReader& component);
void decode_byte_level(std::vector<std::string>& tokens);

}  // namespace tessera::internal
