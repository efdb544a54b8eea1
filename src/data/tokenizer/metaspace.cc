#include "data/tokenizer/metaspace.h"

#include <algorithm>

#include "data/tokenizer/characters.h"
#include "data/tokenizer/replace.h"
#include "data/tokenizer/steps.h"

namespace tessera::internal {
namespace {

PrependScheme read_prepend_scheme(const JsonReader& component) {
  // Files of before 2024 have add_prefix_space alone.
  const bool adds = component.boolean("add_prefix_space", true);
  if (!component.has("prepend_scheme")) return adds ? PrependScheme::kAlways : PrependScheme::kNever;
  const JsonReader scheme = component.at("prepend_scheme");
  const std::string name = scheme.as_text();
  if (name != "first" && name != "never" && name != "always") scheme.refuse_value("first, never or always");
  if (!adds && name != "never") scheme.refuse("\"add_prefix_space\" is false, so this can only be \"never\"");
  return name == "first" ? PrependScheme::kFirst : name == "never" ? PrependScheme::kNever : PrependScheme::kAlways;
}

// A piece that begins with the mark, and each further one up to the next mark.
void split_before_marks(std::string_view piece, const std::string& mark, std::vector<std::string_view>& pieces) {
  while (!piece.empty()) {
    const std::size_t end = std::min(piece.find(mark, piece.starts_with(mark) ? mark.size() : 0), piece.size());
    pieces.push_back(piece.substr(0, end));
    piece.remove_prefix(end);
  }
}

}  // namespace

Metaspace read_metaspace(const JsonReader& component) {
  component.allow_only({"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
  Metaspace metaspace;
  metaspace.mark = component.text("replacement");
  if (to_utf32(metaspace.mark).size() != 1) component.at("replacement").refuse_value("one character");
  metaspace.prepend_scheme = read_prepend_scheme(component);
  metaspace.splits = component.boolean("split", true);
  return metaspace;
}

void mark_spaces(const Metaspace& metaspace, Pieces& pieces) {
  pieces.next.clear();
  for (std::size_t i = 0; i < pieces.views.size(); ++i) {
    std::string marked = replace_all(pieces.views[i], " ", metaspace.mark);
    const bool wants_mark = metaspace.prepend_scheme == PrependScheme::kAlways ||
                            (metaspace.prepend_scheme == PrependScheme::kFirst && i == 0 && pieces.has_beginning);
    if (wants_mark && !marked.starts_with(metaspace.mark)) marked.insert(0, metaspace.mark);
    const std::string_view piece = pieces.made.emplace_back(std::move(marked));
    if (metaspace.splits) {
      split_before_marks(piece, metaspace.mark, pieces.next);
    } else {
      pieces.next.push_back(piece);
    }
  }
  pieces.views.swap(pieces.next);
}

void unmark_spaces(const Metaspace& metaspace, std::vector<std::string>& tokens) {
  const bool drops_first = metaspace.prepend_scheme != PrependScheme::kNever;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = replace_all(tokens[i], metaspace.mark, i == 0 && drops_first ? "" : " ");
  }
}

}  // namespace tessera::internal
