#include "data/tokenizer/mixed_case.h"

#include "data/tokenizer/walker.h"

namespace tessera::internal {

const char* const kTekkenExpression =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const char* const kGpt4oExpression =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

namespace {

// The end of [upper]*[lower]+ at `at`; `at` itself: no match. Characters without case are in both classes. Where no
// lower case follows, the first class gives back what the second one needs: up to the last character that has no case.
std::size_t end_of_lower_word(const Walker& walker, std::size_t at) {
  std::size_t end = at, end_without_case = at;
  while (!walker.at_end(end) && (walker.flags(end) & kUpperRun) != 0) {
    const bool has_no_case = (walker.flags(end) & kLowerRun) != 0;
    end = walker.next(end);
    if (has_no_case) end_without_case = end;
  }
  const std::size_t end_of_lower = walker.run_of_any(end, kLowerRun);
  return end_of_lower > end ? end_of_lower : end_without_case;
}

// The first two alternatives: [^\r\n\p{L}\p{N}]? before [upper]*[lower]+, or else before [upper]+[lower]*, of which no
// lower case can follow where the first one has failed. `at`: neither.
std::size_t end_of_word(std::string_view text, const Walker& walker, std::size_t at) {
  const bool may_be_before = (walker.flags(at) & (kLetter | kNumber)) == 0 && !is_line_end(text[at]);
  const std::size_t second = walker.next(at);
  if (may_be_before) {
    if (const std::size_t end = end_of_lower_word(walker, second); end > second) return end;
  }
  if (const std::size_t end = end_of_lower_word(walker, at); end > at) return end;
  if (may_be_before) {
    if (const std::size_t end = walker.run_of_any(second, kUpperRun); end > second) return end;
  }
  return walker.run_of_any(at, kUpperRun);
}

// The alternatives in their order; each returns if it applies.
template <bool has_contractions, int max_digits>
std::size_t match_end(std::string_view text, const Walker& walker, std::size_t at) {
  const unsigned flags = walker.flags(at);
  if ((flags & kNumber) != 0) {
    std::size_t end = at;
    for (int i = 0; i < max_digits && !walker.at_end(end) && (walker.flags(end) & kNumber) != 0; ++i) {
      end = walker.next(end);
    }
    return end;
  }
  if (const std::size_t end = end_of_word(text, walker, at); end > at) {
    if (!has_contractions || walker.at_end(end) || text[end] != '\'') return end;
    return end + contraction_length(text.substr(end));
  }
  const std::size_t others = text[at] == ' ' ? at + 1 : at;
  if (!walker.at_end(others) && (walker.flags(others) & kKinds) == 0) {
    std::size_t end = walker.run(others, kKinds, 0);
    while (end < text.size() && (is_line_end(text[end]) || text[end] == '/')) ++end;
    return end;
  }
  return end_of_lines_or_space(text, walker, at);
}

}  // namespace

void find_tekken_pieces(std::string_view text, std::vector<Match>& matches) {
  find_back_to_back<match_end<false, 1>>(text, matches);
}
void find_gpt4o_pieces(std::string_view text, std::vector<Match>& matches) {
  find_back_to_back<match_end<true, 3>>(text, matches);
}

}  // namespace tessera::internal
