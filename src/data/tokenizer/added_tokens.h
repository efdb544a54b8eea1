// Tokens found in the text before any other step: special ones such as </s>, and other added ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/json_reader.h"
#include "data/tokenizer/bpe.h"
#include "data/tokenizer/steps.h"

namespace tessera::internal {

struct AddedToken {
  std::string content;
  bool single_word = false, lstrip = false, rstrip = false, normalized = true, special = false;
  bool operator==(const AddedToken&) const = default;
};

// A part of a text: a token that was found, or text left for later steps (id -1).
struct Segment {
  std::string_view text;
  std::int32_t id;
};

// Finds the leftmost, longest of a set of texts at each place.
class TextFinder {
 public:
  // The first of two equal texts wins.
  void add(std::string_view text, std::int32_t id);
  bool empty() const { return nodes_.size() == 1; }

  struct Found {
    std::size_t begin, end;
    std::int32_t id;
  };
  std::optional<Found> find(std::string_view text, std::size_t from) const;

 private:
  struct Node {
    std::unordered_map<unsigned char, std::uint32_t> next;
    std::int32_t id = -1;
  };
  std::vector<Node> nodes_ = std::vector<Node>(1);
  bool begins_[256] = {};
  int num_beginnings_ = 0;
  unsigned char only_beginning_ = 0;
};

class AddedTokens {
 public:
  AddedTokens() = default;
  // In file order. Tokens that `vocabulary` does not know get the ids after it, as in the original.
  AddedTokens(const std::vector<AddedToken>& tokens, const Vocabulary& vocabulary, const Normalizer& normalizer);

  // Tokens looked for in the raw text, and those looked for in the normalized text (`normalized`).
  void split(std::string_view text, bool normalized, std::vector<Segment>& segments) const;
  bool any(bool normalized) const { return !(normalized ? normalized_ : plain_).empty(); }

  std::optional<std::int32_t> id_of(std::string_view content) const;
  const AddedToken* token_of(std::int32_t id) const;
  bool is_special(std::string_view content) const { return special_.contains(std::string(content)); }
  std::int32_t end_id() const { return end_id_; }

 private:
  IdOfToken ids_;
  std::unordered_map<std::int32_t, AddedToken> tokens_;
  std::unordered_set<std::string> special_;
  TextFinder plain_, normalized_;
  std::int32_t end_id_ = 0;
};

// "added_tokens" of tokenizer.json.
AddedTokens read_added_tokens(const JsonReader& file, const Vocabulary& vocabulary, const Normalizer& normalizer);
// "added_tokens_decoder" of tokenizer_config.json, for folders without tokenizer.json: {"50256": {"content": ...}}.
std::vector<AddedToken> read_added_tokens_decoder(const JsonReader& config, const Vocabulary& vocabulary);

}  // namespace tessera::internal
