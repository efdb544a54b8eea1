// Texts as Python's str sees them: characters instead of bytes, its white space, its cases and its parts. Texts are
// well-formed UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/characters.h"

namespace tessera::internal::jinja {

bool is_space(char32_t c);      // str.isspace
bool is_printable(char32_t c);  // str.isprintable

std::size_t num_characters(std::string_view text);

// Without white space at an end, or without the characters of `set`, where it is not null.
std::string_view strip_left(std::string_view text, const std::string* set = nullptr);
std::string_view strip_right(std::string_view text, const std::string* set = nullptr);

// At separators, `most` times; at ends of lines.
std::vector<std::string_view> split_at(std::string_view text, std::string_view separator, std::size_t most);
std::vector<std::string_view> lines_of(std::string_view text);

std::string upper_case(std::string_view text);
std::string lower_case_of(std::string_view text);  // of all of Unicode, where core/text.h's knows ASCII
std::string capitalized(std::string_view text);    // the first character in title case, the others in lower case

// Calls visit(character, begin, end) for each.
void for_each_character(std::string_view text, const auto& visit) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = at + utf8_length(static_cast<unsigned char>(text[at]));
    visit(utf8_decode(text.data() + at), at, end);
    at = end;
  }
}

}  // namespace tessera::internal::jinja
