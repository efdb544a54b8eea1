// Hand-written scanners for the expressions that nearly all files of this family use: each is one pass over the text.
// Tests compare them with Oniguruma and with the original.
#include "data/tokenizer/pattern.h"

#include <cstring>

#include "core/error.h"
#include "data/tokenizer/characters.h"
#include "data/tokenizer/mixed_case.h"
#include "data/tokenizer/replace.h"
#include "data/tokenizer/unicode.h"
#include "data/tokenizer/walker.h"

namespace tessera::internal {

const char* const kGpt2Expression = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const char* const kBloomExpression = " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+";
const char* const kLlama3Expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const char* const kQwen2Expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

namespace {

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

// [^\s\p{L}\p{N}]+[\r\n]*
std::size_t end_of_others(std::string_view text, const Walker& walker, std::size_t at) {
  at = walker.run(at, kKinds, 0);
  while (at < text.size() && is_line_end(text[at])) ++at;
  return at;
}

// The alternatives in their order; each returns if it applies.
template <int max_digits>
std::size_t llama3_match_end(std::string_view text, const Walker& walker, std::size_t at) {
  if (text[at] == '\'') {
    if (const std::size_t length = contraction_length(text.substr(at)); length > 0) return at + length;
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
  return end_of_lines_or_space(text, walker, at);
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
  if (expression == kTekkenExpression) return find_tekken_pieces;
  if (expression == kGpt4oExpression) return find_gpt4o_pieces;
  if (auto pattern = make_expression(expression, where)) return pattern;
  throw UsageError(where + ": the expression \"" + expression +
                   "\" needs Oniguruma, but this tessera was built without it (only the expressions of BLOOM, GPT-2, "
                   "GPT-4o, Llama 3, Qwen 2 and tekken are built in); install libonig-dev and build again");
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
