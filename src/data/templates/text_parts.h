// What methods and filters of texts share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/templates/rendering.h"
#include "data/templates/sequence.h"

namespace tessera::internal::jinja {

// Without the characters of `set` at an end.
std::string_view strip_set_left(std::string_view text, std::string_view set);
std::string_view strip_set_right(std::string_view text, std::string_view set);

// The first `count` occurrences; all of them where it is negative.
std::string replaced(Rendering& rendering, std::string_view text, std::string_view old, std::string_view with,
                     std::int64_t count);

// At least `width` characters: padded at the end, at the beginning, or at both.
std::string padded_text(Rendering& rendering, std::string_view text, std::int64_t width, std::string_view fill,
                        bool is_at_begin, bool is_at_both);

// For HTML: &, <, >, ' and ".
std::string escape_html(Rendering& rendering, std::string_view text);

// The same of each text that is no markup: of the value, or of its items.
Value escaped_texts(Rendering& rendering, const Value& value);

// str.splitlines
std::vector<std::string_view> lines_of(std::string_view text, bool keeps_ends = false);

}  // namespace tessera::internal::jinja
