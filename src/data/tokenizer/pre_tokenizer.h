// Splits a text into pieces; the model then merges each piece separately.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/component.h"
#include "data/tokenizer/pattern.h"

namespace tessera::internal {

// The pieces of one text as they pass through the steps, and buffers that the steps share.
struct Pieces {
  std::vector<std::string_view> views;  // of the caller's text or of `made`; none is empty
  std::vector<std::string_view> next;
  std::vector<Match> matches;
  std::deque<std::string> made;  // text that a step made

  void begin(std::string_view text) {
    views.clear();
    made.clear();
    if (!text.empty()) views.push_back(text);
  }
};

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// One step; constant, safe from any thread.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Pieces& pieces) const = 0;
};

struct PreTokenizers {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  // The last step of the file turns bytes into the characters that stand for them. We then leave the pieces as they
  // are, and the model reads bytes.
  bool ends_in_bytes = false;

  void apply(Pieces& pieces) const {
    for (const auto& step : steps) step->apply(pieces);
  }
};

// Split, ByteLevel, Digits, Whitespace, WhitespaceSplit and Sequence; others are refused by name. Null gives none.
PreTokenizers read_pre_tokenizers(const Component& component);
PreTokenizers byte_level_pre_tokenizers(bool add_prefix_space, bool use_regex);

// The step that `ends_in_bytes` saves, for models that need characters.
std::unique_ptr<PreTokenizer> make_byte_mapper();

}  // namespace tessera::internal
