#include "data/tokenizer/pre_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "data/tokenizer/characters.h"
#include "data/tokenizer/pattern.h"
#include "data/tokenizer/unicode.h"

namespace tessera::internal {
namespace {

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

// Joins parts as Contiguous (equal neighbours) or MergedWithPrevious (a match that follows a non-match) requires.
std::vector<Part> joined(const std::vector<Part>& parts, SplitBehavior behavior) {
  std::vector<Part> result;
  bool previous = false;
  for (const Part& part : parts) {
    const bool joins = behavior == SplitBehavior::kContiguous ? part.is_match == previous : part.is_match && !previous;
    if (joins && !result.empty()) {
      result.back().end = part.end;
    } else {
      result.push_back(part);
    }
    previous = part.is_match;
  }
  return result;
}

// MergedWithNext is MergedWithPrevious from the end.
std::vector<Part> joined_with_next(std::vector<Part> parts) {
  std::vector<Part> result;
  bool previous = false;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->is_match && !previous && !result.empty()) {
      result.back().begin = part->begin;
    } else {
      result.push_back(*part);
    }
    previous = part->is_match;
  }
  std::reverse(result.begin(), result.end());
  return result;
}

class Split : public PreTokenizer {
 public:
  Split(std::unique_ptr<Pattern> pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void apply(Pieces& pieces) const override {
    pieces.next.clear();
    for (const std::string_view piece : pieces.views) {
      pieces.matches.clear();
      pattern_->find_all(piece, pieces.matches);
      if (behavior_ == SplitBehavior::kIsolated) {
        isolate(piece, pieces);
      } else {
        split(piece, pieces);
      }
    }
    pieces.views.swap(pieces.next);
  }

 private:
  static void keep(std::string_view piece, std::size_t begin, std::size_t end, Pieces& pieces) {
    if (begin != end) pieces.next.push_back(piece.substr(begin, end - begin));
  }

  // The case of nearly all files, without a list of parts.
  static void isolate(std::string_view piece, Pieces& pieces) {
    std::size_t done = 0;
    for (const Match& match : pieces.matches) {
      keep(piece, done, match.begin, pieces);
      keep(piece, match.begin, match.end, pieces);
      done = match.end;
    }
    keep(piece, done, piece.size(), pieces);
  }

  void split(std::string_view piece, Pieces& pieces) const {
    std::vector<Part> parts = all_parts(piece, pieces.matches, invert_);
    const bool removes = behavior_ == SplitBehavior::kRemoved;
    if (behavior_ == SplitBehavior::kMergedWithNext) {
      parts = joined_with_next(std::move(parts));
    } else if (!removes) {
      parts = joined(parts, behavior_);
    }
    for (const Part& part : parts) {
      if (!removes || !part.is_match) keep(piece, part.begin, part.end, pieces);
    }
  }

  std::unique_ptr<Pattern> pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

class PrefixSpace : public PreTokenizer {
 public:
  void apply(Pieces& pieces) const override {
    for (std::string_view& piece : pieces.views) {
      if (piece.front() != ' ') piece = pieces.made.emplace_back(" " + std::string(piece));
    }
  }
};

class ByteMapper : public PreTokenizer {
 public:
  void apply(Pieces& pieces) const override {
    for (std::string_view& piece : pieces.views) piece = pieces.made.emplace_back(bytes_to_characters(piece));
  }
};

// Nested sequences become one list: (steps, whether the last maps bytes).
void read_into(const Component& component, PreTokenizers& all);

void add_byte_level(PreTokenizers& all, bool add_prefix_space, bool use_regex) {
  if (add_prefix_space) all.steps.push_back(std::make_unique<PrefixSpace>());
  if (use_regex) {
    all.steps.push_back(std::make_unique<Split>(make_pattern(kGpt2Expression, ""), SplitBehavior::kIsolated, false));
  }
  all.ends_in_bytes = true;
}

SplitBehavior read_behavior(const Component& component) {
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

// The step of a simple type; nothing if the name is unknown.
std::unique_ptr<PreTokenizer> read_step(const Component& component, const std::string& type) {
  if (type == "Split") {
    component.allow_only({"type", "pattern", "behavior", "invert"});
    return std::make_unique<Split>(read_pattern(component.child("pattern")), read_behavior(component.child("behavior")),
                                   component.flag("invert"));
  }
  if (type == "Digits") {
    component.allow_only({"type", "individual_digits"});
    const SplitBehavior behavior =
        component.flag("individual_digits") ? SplitBehavior::kIsolated : SplitBehavior::kContiguous;
    return std::make_unique<Split>(make_character_pattern(kNumeric), behavior, false);
  }
  if (type == "Whitespace") {
    component.allow_only({"type"});
    return std::make_unique<Split>(make_word_pattern(), SplitBehavior::kRemoved, true);
  }
  if (type == "WhitespaceSplit") {
    component.allow_only({"type"});
    return std::make_unique<Split>(make_character_pattern(kSpace), SplitBehavior::kRemoved, false);
  }
  return nullptr;
}

void read_into(const Component& component, PreTokenizers& all) {
  const std::string type = component.type();
  if (type == "Sequence") {
    component.allow_only({"type", "pretokenizers"});
    for (const Component& step : component.children("pretokenizers")) read_into(step, all);
    return;
  }
  if (all.ends_in_bytes) {  // more steps follow, so the characters are needed
    all.steps.push_back(make_byte_mapper());
    all.ends_in_bytes = false;
  }
  if (type == "ByteLevel") {
    component.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    component.flag("trim_offsets", true);  // affects only offsets, which we do not return
    return add_byte_level(all, component.flag("add_prefix_space"), component.flag("use_regex", true));
  }
  auto step = read_step(component, type);
  if (step == nullptr) {
    component.refuse(fmt::format(
        "the pre-tokenizer \"{}\" is not supported; supported: Split, ByteLevel, Digits, Whitespace, WhitespaceSplit, "
        "Sequence",
        type));
  }
  all.steps.push_back(std::move(step));
}

}  // namespace

PreTokenizers read_pre_tokenizers(const Component& component) {
  PreTokenizers all;
  if (!component.is_null()) read_into(component, all);
  return all;
}

PreTokenizers byte_level_pre_tokenizers(bool add_prefix_space, bool use_regex) {
  PreTokenizers all;
  add_byte_level(all, add_prefix_space, use_regex);
  return all;
}

std::unique_ptr<PreTokenizer> make_byte_mapper() {
  return std::make_unique<ByteMapper>();
}

}  // namespace tessera::internal
