// Metaspace: spaces become a mark, usually U+2581, that is a part of the words. As a pre-tokenizer and as a decoder.
#pragma once

#include <string>
#include <vector>

#include "core/json_reader.h"

namespace tessera::internal {

struct Pieces;

// Which pieces of a text get a mark in front, if they do not begin with one.
enum class PrependScheme { kFirst, kNever, kAlways };

struct Metaspace {
  std::string mark;  // one character
  PrependScheme prepend_scheme = PrependScheme::kAlways;
  bool splits = true;  // before each mark
};

Metaspace read_metaspace(const JsonReader& component);

// The pre-tokenizer's step.
void mark_spaces(const Metaspace& metaspace, Pieces& pieces);
// The decoder's: marks become spaces, but those of the first token vanish, unless none was put in front.
void unmark_spaces(const Metaspace& metaspace, std::vector<std::string>& tokens);

}  // namespace tessera::internal
