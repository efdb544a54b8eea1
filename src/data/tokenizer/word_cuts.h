// Where a long piece may be cut into words without any change of its tokens.
//
// Files with SentencePiece's way do not split a text before the model: it merges whole documents. But no merge of such
// a model joins, say, a letter and the mark of the next word's space. Both sides of such a place are merged without
// regard to each other, so that they may as well be merged apart, and short words can be remembered (WordCache).
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tessera::internal {

class WordCuts {
 public:
  WordCuts() = default;  // none

  struct Model {
    const std::vector<std::pair<std::string, std::string>>& merges;
    // Whether a character is a token. Between two such characters only merges decide.
    std::bitset<128> known_ascii;
    bool knows_mark = false;  // U+2581
    // What a character that is not a token may become: the last characters of these tokens. Nothing else may happen to
    // it; one that is dropped would make its neighbours meet.
    bool keeps_unknown_characters = false;
    std::vector<std::string> tokens_of_unknown;
  };
  explicit WordCuts(const Model& model);

  bool any() const { return any_; }
  // The end of the word that begins at `begin`: the next place to cut, or the end of the piece.
  std::size_t end_of_word(std::string_view piece, std::size_t begin) const;

 private:
  bool may_cut_before_mark(std::string_view piece, std::size_t mark) const;

  bool any_ = false;
  std::array<std::bitset<128>, 128> between_;  // [left][right], both in ASCII
  std::bitset<128> before_mark_;               // [left in ASCII]
  bool after_others_ = false;                  // before the mark, after a character beyond ASCII that ...
  std::unordered_set<char32_t> joins_mark_;    // ... is not one of these
};

}  // namespace tessera::internal
