#include "data/tokenizer/word_cuts.h"

#include <algorithm>

#include "data/tokenizer/characters.h"

namespace tessera::internal {
namespace {

constexpr char32_t kMark = 0x2581;
constexpr std::string_view kMarkBytes = "\xE2\x96\x81";
constexpr char32_t kEndOfAscii = 128;

char32_t first_character(const std::string& token) {
  return utf8_decode(token.data());
}
char32_t last_character(std::string_view text) {
  return utf8_decode(text.data() + utf8_previous(text, text.size()));
}

}  // namespace

WordCuts::WordCuts(const Model& model) {
  if (!model.knows_mark || !model.keeps_unknown_characters) return;
  for (std::size_t left = 0; left < kEndOfAscii; ++left) {
    if (model.known_ascii[left]) between_[left] = model.known_ascii;
  }
  // Every place within a token was the seam of one merge, or is within its left or right part: the seams are all.
  for (const auto& [left, right] : model.merges) {
    if (left.empty() || right.empty()) continue;
    const char32_t from = last_character(left), to = first_character(right);
    if (to == kMark) joins_mark_.insert(from);
    if (from < kEndOfAscii && to < kEndOfAscii) between_[from].reset(to);
  }
  // An unknown character before the mark stands for tokens that may be merged with it.
  const bool unknown_joins = std::any_of(
      model.tokens_of_unknown.begin(), model.tokens_of_unknown.end(),
      [this](const std::string& token) { return token.empty() || joins_mark_.contains(last_character(token)); });
  for (char32_t left = 0; left < kEndOfAscii; ++left) {
    before_mark_[left] = !joins_mark_.contains(left) && (model.known_ascii[left] || !unknown_joins);
  }
  after_others_ = !unknown_joins;
  any_ = before_mark_.any() || after_others_;
}

bool WordCuts::may_cut_before_mark(std::string_view piece, std::size_t mark) const {
  const char32_t left = last_character(piece.substr(0, mark));
  return left < kEndOfAscii ? before_mark_[left] : after_others_ && !joins_mark_.contains(left);
}

std::size_t WordCuts::end_of_word(std::string_view piece, std::size_t begin) const {
  auto left = static_cast<unsigned char>(piece[begin]);
  for (std::size_t at = begin + 1; at < piece.size(); ++at) {
    const auto right = static_cast<unsigned char>(piece[at]);
    if ((left | right) < kEndOfAscii) {
      if (between_[left][right]) return at;
    } else if (right == static_cast<unsigned char>(kMarkBytes[0]) && piece.substr(at, 3) == kMarkBytes) {
      if (may_cut_before_mark(piece, at)) return at;
    }
    left = right;
  }
  return piece.size();
}

}  // namespace tessera::internal
