#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "data/tokenizer/characters.h"
#include "data/tokenizer/steps.h"
#include "data/tokenizer/unicode.h"

namespace tessera::internal {
namespace {

// Unicode's normal forms, from the tables of the Unicode version that the original uses (unicode.h).
struct NormalForm {
  bool compatibility = false, compose = false;  // NFD: neither, NFKC: both
};

// Hangul syllables are arithmetic: 19 leading consonants x 21 vowels x 28 trailing consonants (the first: none).
constexpr char32_t kSyllable = 0xAC00, kLeading = 0x1100, kVowel = 0x1161, kTrailing = 0x11A7;
constexpr char32_t kNumLeading = 19, kNumVowels = 21, kNumTrailing = 28;
constexpr char32_t kNumSyllables = kNumLeading * kNumVowels * kNumTrailing;

void append_decomposed(std::u32string& out, char32_t c, bool compatibility) {
  if (c < 0xA0) {  // nothing below decomposes
    out += c;
  } else if (c >= kSyllable && c < kSyllable + kNumSyllables) {
    const char32_t index = c - kSyllable;
    out += kLeading + index / (kNumVowels * kNumTrailing);
    out += kVowel + index / kNumTrailing % kNumVowels;
    if (index % kNumTrailing != 0) out += kTrailing + index % kNumTrailing;
  } else if (const auto parts = decomposition(c, compatibility); !parts.empty()) {
    for (const std::uint32_t part : parts) out += static_cast<char32_t>(part);
  } else {
    out += c;
  }
}

// Marks after a letter are sorted by class; equal classes keep their order.
void order_marks(std::u32string& text) {
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    if (text[begin] < 0x300 || combining_class(text[begin]) == 0) continue;
    std::size_t end = begin;
    while (end < text.size() && combining_class(text[end]) != 0) ++end;
    std::stable_sort(text.begin() + static_cast<std::ptrdiff_t>(begin), text.begin() + static_cast<std::ptrdiff_t>(end),
                     [](char32_t a, char32_t b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

std::optional<char32_t> compose(char32_t first, char32_t second) {
  if (first >= kLeading && first < kLeading + kNumLeading && second >= kVowel && second < kVowel + kNumVowels) {
    return kSyllable + ((first - kLeading) * kNumVowels + (second - kVowel)) * kNumTrailing;
  }
  if (first >= kSyllable && first < kSyllable + kNumSyllables && (first - kSyllable) % kNumTrailing == 0 &&
      second > kTrailing && second < kTrailing + kNumTrailing) {
    return first + (second - kTrailing);
  }
  return composition(first, second);
}

// Each character joins the last starter before it unless something between them blocks it.
std::u32string composed(const std::u32string& text) {
  std::u32string out;
  std::optional<std::size_t> starter;  // where in `out`
  int last_class = 0;                  // of what follows the starter in `out`
  for (const char32_t c : text) {
    const int its_class = c < 0x300 ? 0 : combining_class(c);
    if (starter) {
      const bool adjacent = out.size() == *starter + 1;
      if (adjacent || last_class < its_class) {
        if (const auto whole = compose(out[*starter], c)) {
          out[*starter] = *whole;
          continue;
        }
      }
    }
    if (its_class == 0) starter = out.size();
    last_class = its_class;
    out += c;
  }
  return out;
}

// Below U+0300 nothing composes, below U+00A0 nothing decomposes: most texts are unchanged.
bool stays_as_it_is(std::string_view text, NormalForm form) {
  const bool latin_may_change = form.compatibility || !form.compose;
  for (const char byte : text) {
    const auto value = static_cast<unsigned char>(byte);
    if (value >= (latin_may_change ? 0xC2 : 0xCC)) return false;
  }
  return true;
}

void to_normal_form(std::string& text, NormalForm form) {
  if (stays_as_it_is(text, form)) return;
  std::u32string parts;
  for (const char32_t c : to_utf32(text)) append_decomposed(parts, c, form.compatibility);
  order_marks(parts);
  if (form.compose) parts = composed(parts);
  text.clear();
  for (const char32_t c : parts) append_utf8(text, c);
}

void to_lower_case(std::string& text) {
  std::u32string lower;
  for (const char32_t c : to_utf32(text)) append_lower_case(lower, c);
  text.clear();
  for (const char32_t c : lower) append_utf8(text, c);
}

}  // namespace

Normalizer read_normalizer(const JsonReader& component) {
  if (component.is_null()) return nullptr;
  const std::string type = component.text("type");
  if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    component.allow_only({"type"});
    const NormalForm form{type[2] == 'K', type.back() == 'C'};
    return [form](std::string& text) { to_normal_form(text, form); };
  }
  if (type == "Lowercase") {
    component.allow_only({"type"});
    return to_lower_case;
  }
  if (type == "Strip") {
    component.allow_only({"type", "strip_left", "strip_right"});
    const bool left = component.boolean("strip_left"), right = component.boolean("strip_right");
    return [left, right](std::string& text) {
      if (right) text.resize(begin_of_trailing_space(text));
      if (left) text.erase(0, end_of_leading_space(text));
    };
  }
  if (type == "Replace") {
    return [replace = read_replacement(component)](std::string& text) { text = replace(text); };
  }
  if (type == "Prepend") {
    component.allow_only({"type", "prepend"});
    return [prefix = component.text("prepend")](std::string& text) {
      if (!text.empty()) text.insert(0, prefix);
    };
  }
  if (type == "Sequence") {
    component.allow_only({"type", "normalizers"});
    std::vector<Normalizer> steps;
    for (const JsonReader& step : component.at("normalizers").items()) {
      if (step.is_null()) step.refuse_value("a normalizer");
      steps.push_back(read_normalizer(step));
    }
    return [steps](std::string& text) {
      for (const Normalizer& step : steps) step(text);
    };
  }
  component.refuse(fmt::format(
      "the normalizer \"{}\" is not supported; supported: NFC, NFD, NFKC, NFKD, Lowercase, Strip, Replace, Prepend, "
      "Sequence",
      type));
}

}  // namespace tessera::internal
