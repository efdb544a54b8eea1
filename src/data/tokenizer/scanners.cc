// Hand-written scanners for the expressions that nearly all files of this family use: each is one pass over the text.
// Tests compare them with PCRE2 and with the original.
#include <cstring>

#include "core/error.h"
#include "data/tokenizer/pattern.h"
#include "data/tokenizer/unicode.h"
#include "data/tokenizer/utf8.h"

namespace tessera::internal {

const char* const kGpt2Expression = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const char* const kBloomExpression = " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+";

namespace {

// Steps through a text, character by character, with the flags of each.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text), table_(CharTable::get()) {}

  bool at_end(std::size_t at) const { return at >= text_.size(); }
  std::uint8_t flags(std::size_t at) const {
    const auto byte = static_cast<unsigned char>(text_[at]);
    return table_[byte < 0x80 ? byte : utf8_decode(text_.data() + at)];
  }
  std::size_t next(std::size_t at) const { return at + utf8_length(static_cast<unsigned char>(text_[at])); }
  // The end of the run of characters whose flags under `mask` are exactly `wanted`.
  std::size_t run(std::size_t at, unsigned mask, unsigned wanted) const {
    while (!at_end(at) && (flags(at) & mask) == wanted) at = next(at);
    return at;
  }

 private:
  std::string_view text_;
  const CharTable& table_;
};

constexpr unsigned kKinds = kLetter | kNumber | kSpace;  // GPT-2 knows these three and 'anything else' (0)

class Gpt2Pattern : public Pattern {
 public:
  void find_all(std::string_view text, std::vector<Match>& matches) const override {
    const Walker walker(text);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = match_end(text, walker, at);
      matches.push_back({at, end});
      at = end;
    }
  }

 private:
  // Every character begins a match, so matches follow each other without gaps.
  static std::size_t match_end(std::string_view text, const Walker& walker, std::size_t at) {
    if (text[at] == '\'') {
      if (const std::size_t length = contraction_length(text.substr(at)); length > 0) return at + length;
    }
    const unsigned kind = walker.flags(at) & kKinds;
    if (kind != kSpace) return walker.run(walker.next(at), kKinds, kind);
    const std::size_t second = walker.next(at);
    if (walker.at_end(second)) return second;
    const unsigned second_kind = walker.flags(second) & kKinds;
    if (second_kind != kSpace) return text[at] == ' ' ? walker.run(second, kKinds, second_kind) : second;
    // White space up to the end of the text, or all but its last character, which may belong to the next word.
    const std::size_t end = walker.run(second, kSpace, kSpace);
    return walker.at_end(end) ? end : utf8_previous(text, end);
  }

  static std::size_t contraction_length(std::string_view text) {
    if (text.size() < 2) return 0;
    if (std::strchr("stmd", text[1]) != nullptr && text[1] != '\0') return 2;
    const std::string_view two = text.substr(1, 2);
    return two == "re" || two == "ve" || two == "ll" ? 3 : 0;
  }
};

// " ?" and a run of non-stop characters. The text between matches is left to the caller.
class BloomPattern : public Pattern {
 public:
  void find_all(std::string_view text, std::vector<Match>& matches) const override {
    const Walker walker(text);
    std::size_t at = 0;
    while (true) {
      const std::size_t stopped = at;
      at = walker.run(at, kBloomStop, kBloomStop);
      if (walker.at_end(at)) return;
      const std::size_t begin = at > stopped && text[at - 1] == ' ' ? at - 1 : at;
      at = walker.run(at, kBloomStop, 0);
      matches.push_back({begin, at});
    }
  }
};

class LiteralPattern : public Pattern {
 public:
  explicit LiteralPattern(std::string literal) : literal_(std::move(literal)) {}
  void find_all(std::string_view text, std::vector<Match>& matches) const override {
    for (std::size_t at = 0; (at = text.find(literal_, at)) != std::string_view::npos; at += literal_.size()) {
      matches.push_back({at, at + literal_.size()});
    }
  }

 private:
  std::string literal_;
};

class CharacterPattern : public Pattern {
 public:
  explicit CharacterPattern(unsigned flags) : flags_(flags) {}
  void find_all(std::string_view text, std::vector<Match>& matches) const override {
    const Walker walker(text);
    for (std::size_t at = 0; at < text.size(); at = walker.next(at)) {
      if ((walker.flags(at) & flags_) != 0) matches.push_back({at, walker.next(at)});
    }
  }

 private:
  unsigned flags_;
};

class WordPattern : public Pattern {
 public:
  void find_all(std::string_view text, std::vector<Match>& matches) const override {
    const Walker walker(text);
    for (std::size_t at = 0; at < text.size();) {
      const unsigned kind = walker.flags(at) & (kPlainWord | kSpace);
      const std::size_t end = walker.run(at, kPlainWord | kSpace, kind);
      if (kind != kSpace) matches.push_back({at, end});
      at = end;
    }
  }
};

}  // namespace

std::unique_ptr<Pattern> make_pattern(const std::string& expression, const std::string& where) {
  if (expression == kGpt2Expression) return std::make_unique<Gpt2Pattern>();
  if (expression == kBloomExpression) return std::make_unique<BloomPattern>();
  if (auto pattern = make_pcre_pattern(expression, where)) return pattern;
  throw UsageError(where + ": the expression \"" + expression +
                   "\" needs PCRE2, but this tessera was built without it (only GPT-2's and BLOOM's are built in); "
                   "install libpcre2-dev and build again");
}

std::unique_ptr<Pattern> make_literal_pattern(std::string literal, const std::string& where) {
  if (literal.empty()) throw UsageError(where + ": expected a text to look for, found an empty string");
  return std::make_unique<LiteralPattern>(std::move(literal));
}
std::unique_ptr<Pattern> make_character_pattern(unsigned flags) {
  return std::make_unique<CharacterPattern>(flags);
}
std::unique_ptr<Pattern> make_word_pattern() {
  return std::make_unique<WordPattern>();
}

}  // namespace tessera::internal
