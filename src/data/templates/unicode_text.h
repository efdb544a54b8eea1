// Texts as Python's str sees them: characters instead of bytes, its white space, and upper and lower case. Texts are
// well-formed UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "data/tokenizer/characters.h"

namespace tessera::internal::jinja {

bool is_space(char32_t c);      // str.isspace
bool is_printable(char32_t c);  // str.isprintable
bool has_case(char32_t c);      // upper, lower or title case

std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);

std::size_t num_characters(std::string_view text);
// The byte where a character begins, the end of the text at most.
std::size_t byte_of_character(std::string_view text, std::size_t character);

std::string upper_case(std::string_view text);
std::string lower_case_of(std::string_view text);  // of all of Unicode, where core/text.h's knows ASCII
std::string capitalized(std::string_view text);    // the first character in title case, the others in lower case
// Each word capitalized; words end at characters for which `ends_word` holds.
std::string title_case(std::string_view text, bool (*ends_word)(char32_t));

// Calls visit(character, begin, end) for each.
void for_each_character(std::string_view text, const auto& visit) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = at + utf8_length(static_cast<unsigned char>(text[at]));
    visit(utf8_decode(text.data() + at), at, end);
    at = end;
  }
}

}  // namespace tessera::internal::jinja
