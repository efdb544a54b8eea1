// JSON with comments, as the catalogue and site files allow it. (no torch)
#pragma once

#include <string>
#include <string_view>

#include "core/json.h"

namespace tessera {

// The text with // and /* */ comments blanked, so that lines and columns stay as they are.
std::string without_comments(std::string_view text);

// parse_json() of that. Throws UsageError also if it is not an object.
Json parse_commented_object(std::string_view text, const std::string& origin);

}  // namespace tessera
