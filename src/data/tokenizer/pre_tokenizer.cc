#include <fmt/format.h>

#include <map>

#include "data/tokenizer/characters.h"
#include "data/tokenizer/metaspace.h"
#include "data/tokenizer/steps.h"
#include "data/tokenizer/unicode.h"

namespace tessera::internal {
namespace {

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct Part {
  std::size_t begin, end;
  bool is_match;
};

// Matches and the text between them, in order, covering the whole text.
std::vector<Part> all_parts(std::string_view text, const std::vector<Match>& matches, bool invert) {
  std::vector<Part> parts;
  std::size_t done = 0;
  for (const Match& match : matches) {
    if (match.begin != done) parts.push_back({done, match.begin, invert});
    parts.push_back({match.begin, match.end, !invert});
    done = match.end;
  }
  if (done != text.size()) parts.push_back({done, text.size(), invert});
  return parts;
}

// Whether two neighbours become one piece.
bool are_joined(const Part& left, const Part& right, SplitBehavior behavior) {
  if (behavior == SplitBehavior::kContiguous) return left.is_match == right.is_match;
  if (behavior == SplitBehavior::kMergedWithPrevious) return !left.is_match && right.is_match;
  return behavior == SplitBehavior::kMergedWithNext && left.is_match && !right.is_match;
}

void keep(std::string_view piece, std::size_t begin, std::size_t end, Pieces& pieces) {
  if (begin != end) pieces.next.push_back(piece.substr(begin, end - begin));
}

// The case of nearly all files, without a list of parts.
void isolate(std::string_view piece, Pieces& pieces) {
  std::size_t done = 0;
  for (const Match& match : pieces.matches) {
    keep(piece, done, match.begin, pieces);
    keep(piece, match.begin, match.end, pieces);
    done = match.end;
  }
  keep(piece, done, piece.size(), pieces);
}

void split(std::string_view piece, SplitBehavior behavior, bool invert, Pieces& pieces) {
  const std::vector<Part> parts = all_parts(piece, pieces.matches, invert);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (behavior == SplitBehavior::kRemoved && parts[i].is_match) continue;
    const std::size_t begin = parts[i].begin;
    while (i + 1 < parts.size() && are_joined(parts[i], parts[i + 1], behavior)) ++i;
    keep(piece, begin, parts[i].end, pieces);
  }
}

void add_split(PreTokenizers& all, Pattern pattern, SplitBehavior behavior, bool invert = false) {
  all.steps.emplace_back([pattern = std::move(pattern), behavior, invert](Pieces& pieces) {
    pieces.next.clear();
    const char* const beginning = pieces.views.empty() ? nullptr : pieces.views.front().data();
    for (const std::string_view piece : pieces.views) {
      pieces.matches.clear();
      pattern(piece, pieces.matches);
      if (behavior == SplitBehavior::kIsolated) {
        isolate(piece, pieces);
      } else {
        split(piece, behavior, invert, pieces);
      }
    }
    pieces.views.swap(pieces.next);
    if (pieces.views.empty() || pieces.views.front().data() != beginning) pieces.has_beginning = false;
  });
}

SplitBehavior read_behavior(const JsonReader& component) {
  static const std::map<std::string, SplitBehavior, std::less<>> names = {
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous}};
  const auto found = names.find(component.as_text());
  if (found == names.end()) {
    component.refuse_value("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
  }
  return found->second;
}

// Nested sequences become one list.
void read_into(const JsonReader& component, PreTokenizers& all) {
  const std::string type = component.text("type");
  if (type == "Sequence") {
    component.allow_only({"type", "pretokenizers"});
    for (const JsonReader& step : component.at("pretokenizers").items()) read_into(step, all);
    return;
  }
  if (all.ends_in_bytes) all.add_byte_mapper();  // more steps follow, so the characters are needed
  if (type == "ByteLevel") {
    component.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    component.boolean("trim_offsets", true);  // affects only offsets, which we do not return
    all.add_byte_level(component.boolean("add_prefix_space"), component.boolean("use_regex", true));
  } else if (type == "Split") {
    component.allow_only({"type", "pattern", "behavior", "invert"});
    add_split(all, read_pattern(component.at("pattern")), read_behavior(component.at("behavior")),
              component.boolean("invert"));
  } else if (type == "Metaspace") {
    const Metaspace metaspace = read_metaspace(component);
    const bool is_first = metaspace.prepend_scheme == PrependScheme::kFirst;
    if (is_first && all.puts_text_in_front) {
      component.refuse(
          "prepend_scheme \"first\" is not supported behind a pre-tokenizer that puts a mark or a space in front");
    }
    all.asks_for_beginning |= is_first;
    all.puts_text_in_front |= metaspace.prepend_scheme != PrependScheme::kNever;
    all.steps.emplace_back([metaspace](Pieces& pieces) { mark_spaces(metaspace, pieces); });
  } else if (type == "Digits") {
    component.allow_only({"type", "individual_digits"});
    add_split(all, make_character_pattern(kNumeric),
              component.boolean("individual_digits") ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
  } else if (type == "Whitespace") {
    component.allow_only({"type"});
    add_split(all, make_word_pattern(), SplitBehavior::kRemoved, /*invert=*/true);
  } else if (type == "WhitespaceSplit") {
    component.allow_only({"type"});
    add_split(all, make_character_pattern(kSpace), SplitBehavior::kRemoved);
  } else {
    component.refuse(fmt::format(
        "the pre-tokenizer \"{}\" is not supported; supported: Split, ByteLevel, Metaspace, Digits, Whitespace, "
        "WhitespaceSplit, Sequence",
        type));
  }
}

}  // namespace

PreTokenizers read_pre_tokenizers(const JsonReader& component) {
  PreTokenizers all;
  if (!component.is_null()) read_into(component, all);
  return all;
}

void PreTokenizers::add_byte_level(bool add_prefix_space, bool use_regex) {
  if (add_prefix_space) {
    puts_text_in_front = true;
    steps.emplace_back([](Pieces& pieces) {
      for (std::string_view& piece : pieces.views) {
        if (piece.front() != ' ') piece = pieces.made.emplace_back(" " + std::string(piece));
      }
    });
  }
  if (use_regex) add_split(*this, make_pattern(kGpt2Expression, ""), SplitBehavior::kIsolated);
  ends_in_bytes = true;
}

void PreTokenizers::add_byte_mapper() {
  steps.emplace_back([](Pieces& pieces) {
    for (std::string_view& piece : pieces.views) piece = pieces.made.emplace_back(bytes_to_characters(piece));
  });
  ends_in_bytes = false;
}

}  // namespace tessera::internal
