// Hand-written scanners for the expressions that nearly all files of this family use: each is one pass over the text.
// Tests compare them with Oniguruma and with the original.
#include "data/tokenizer/pattern.h"

#include <cstring>

#include "core/error.h"
#include "data/tokenizer/characters.h"
#include "data/tokenizer/replace.h"
#include "data/tokenizer/unicode.h"

namespace tessera::internal {

const char* const kGpt2Expression = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const char* const kBloomExpression = " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+";
const char* const kLlama3Expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const char* const kQwen2Expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

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

constexpr unsigned kKinds = kLetter | kNumber | kSpace;  // these three and 'anything else' (0)

// The end of \s+(?!\S)|\s+ where white space begins: up to the end of the text, or all but the last character, which
// may belong to the next word, or that one alone.
std::size_t end_of_space(std::string_view text, const Walker& walker, std::size_t at) {
  const std::size_t second = walker.next(at);
  const std::size_t end = walker.run(second, kSpace, kSpace);
  return end == second || walker.at_end(end) ? end : utf8_previous(text, end);
}

// For expressions of which every character begins a match: these follow each other without gaps.
template <auto match_end>
void find_back_to_back(std::string_view text, std::vector<Match>& matches) {
  const Walker walker(text);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = match_end(text, walker, at);
    matches.push_back({at, end});
    at = end;
  }
}

std::size_t gpt2_contraction_length(std::string_view text) {
  if (text.size() < 2) return 0;
  if (std::strchr("stmd", text[1]) != nullptr && text[1] != '\0') return 2;
  const std::string_view two = text.substr(1, 2);
  return two == "re" || two == "ve" || two == "ll" ? 3 : 0;
}

std::size_t gpt2_match_end(std::string_view text, const Walker& walker, std::size_t at) {
  if (text[at] == '\'') {
    if (const std::size_t length = gpt2_contraction_length(text.substr(at)); length > 0) return at + length;
  }
  const unsigned kind = walker.flags(at) & kKinds;
  if (kind != kSpace) return walker.run(walker.next(at), kKinds, kind);
  const std::size_t second = walker.next(at);
  if (walker.at_end(second)) return second;
  const unsigned second_kind = walker.flags(second) & kKinds;
  if (second_kind != kSpace && text[at] == ' ') return walker.run(second, kKinds, second_kind);
  return end_of_space(text, walker, at);
}

bool is_line_end(char c) {
  return c == '\r' || c == '\n';
}

// [^\s\p{L}\p{N}]+[\r\n]*
std::size_t end_of_others(std::string_view text, const Walker& walker, std::size_t at) {
  at = walker.run(at, kKinds, 0);
  while (at < text.size() && is_line_end(text[at])) ++at;
  return at;
}

// In either case; U+017F, the long s, is a small form of S.
std::size_t llama3_contraction_length(std::string_view text) {
  const auto lower = [&](std::size_t i) { return i < text.size() ? static_cast<char>(text[i] | 0x20) : '\0'; };
  if (text.substr(1).starts_with("\u017F")) return 3;
  const char first = lower(1), second = lower(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  return (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l') ? 3 : 0;
}

// The alternatives in their order; each returns if it applies.
template <int max_digits>
std::size_t llama3_match_end(std::string_view text, const Walker& walker, std::size_t at) {
  if (text[at] == '\'') {
    if (const std::size_t length = llama3_contraction_length(text.substr(at)); length > 0) return at + length;
  }
  const unsigned kind = walker.flags(at) & kKinds;
  if (kind == kLetter) return walker.run(at, kKinds, kLetter);
  if (kind == kNumber) {
    for (int i = 0; i < max_digits && !walker.at_end(at) && (walker.flags(at) & kNumber) != 0; ++i)
      at = walker.next(at);
    return at;
  }
  const std::size_t second = walker.next(at);
  if (!walker.at_end(second)) {
    const unsigned second_kind = walker.flags(second) & kKinds;
    if (second_kind == kLetter && !is_line_end(text[at])) return walker.run(second, kKinds, kLetter);
    if (second_kind == 0 && text[at] == ' ') return end_of_others(text, walker, second);
  }
  if (kind == 0) return end_of_others(text, walker, at);
  std::size_t end = walker.run(at, kSpace, kSpace);
  while (end > at && !is_line_end(text[end - 1])) --end;
  return end > at ? end : end_of_space(text, walker, at);
}

// " ?" and a run of non-stop characters. The text between matches is left to the caller.
void find_bloom_pieces(std::string_view text, std::vector<Match>& matches) {
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

}  // namespace

Pattern make_pattern(const std::string& expression, const std::string& where) {
  if (expression == kGpt2Expression) return find_back_to_back<gpt2_match_end>;
  if (expression == kBloomExpression) return find_bloom_pieces;
  if (expression == kLlama3Expression) return find_back_to_back<llama3_match_end<3>>;
  if (expression == kQwen2Expression) return find_back_to_back<llama3_match_end<1>>;
  if (auto pattern = make_expression(expression, where)) return pattern;
  throw UsageError(where + ": the expression \"" + expression +
                   "\" needs Oniguruma, but this tessera was built without it (only the expressions of BLOOM, GPT-2, "
                   "Llama 3 and Qwen 2 are built in); install libonig-dev and build again");
}

Pattern make_character_pattern(unsigned flags) {
  return [flags](std::string_view text, std::vector<Match>& matches) {
    const Walker walker(text);
    for (std::size_t at = 0; at < text.size(); at = walker.next(at)) {
      if ((walker.flags(at) & flags) != 0) matches.push_back({at, walker.next(at)});
    }
  };
}

Pattern make_word_pattern() {
  return [](std::string_view text, std::vector<Match>& matches) {
    const Walker walker(text);
    for (std::size_t at = 0; at < text.size();) {
      const unsigned kind = walker.flags(at) & (kPlainWord | kSpace);
      const std::size_t end = walker.run(at, kPlainWord | kSpace, kind);
      if (kind != kSpace) matches.push_back({at, end});
      at = end;
    }
  };
}

Pattern read_pattern(const JsonReader& component) {
  component.allow_only({"String", "Regex"});
  if (component.json().size() != 1) component.refuse_value("either \"String\" or \"Regex\"");
  if (component.has("Regex")) return make_pattern(component.text("Regex"), component.place());
  const std::string literal = component.text("String");
  if (literal.empty()) component.refuse("expected a text to look for, found an empty string");
  return [literal](std::string_view text, std::vector<Match>& matches) {
    for (std::size_t at = 0; (at = text.find(literal, at)) != std::string_view::npos; at += literal.size()) {
      matches.push_back({at, at + literal.size()});
    }
  };
}

std::function<std::string(std::string_view)> read_replacement(const JsonReader& component) {
  component.allow_only({"type", "pattern", "content"});
  if (component.at("pattern").has("String")) {
    read_pattern(component.at("pattern"));  // refuses an empty one
    return [what = component.at("pattern").text("String"), content = component.text("content")](std::string_view text) {
      return replace_all(text, what, content);
    };
  }
  return [pattern = read_pattern(component.at("pattern")), content = component.text("content")](std::string_view text) {
    std::vector<Match> matches;
    if (!text.empty()) pattern(text, matches);
    std::string result;
    std::size_t done = 0;
    for (const Match& match : matches) {
      result += text.substr(done, match.begin - done);
      result += content;
      done = match.end;
    }
    return result += text.substr(done);
  };
}

}  // namespace tessera::internal
