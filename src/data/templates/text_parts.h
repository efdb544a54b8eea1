// Parts of texts, as Python's str cuts and replaces them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::internal::jinja {

// Without the characters of `set` at an end.
std::string_view strip_set_left(std::string_view text, std::string_view set);
std::string_view strip_set_right(std::string_view text, std::string_view set);

// The first `most` occurrences of `old`, which is not empty.
std::string replaced(std::string_view text, std::string_view old, std::string_view with, std::size_t most);
std::size_t count_of(std::string_view text, std::string_view part, std::size_t most);

// At separators, `most` times, from the left or from the right; at runs of white space, from the left; at ends of
// lines.
std::vector<std::string_view> split_at(std::string_view text, std::string_view separator, std::size_t most,
                                       bool from_right);
std::vector<std::string_view> words_of(std::string_view text, std::size_t most);
std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace tessera::internal::jinja
