// Replaces one text by another, as Replace and Metaspace do with every space of a text.
#pragma once

#include <string>
#include <string_view>

namespace tessera::internal {

// From left to right; `what` is not empty.
std::string replace_all(std::string_view text, std::string_view what, std::string_view content);

}  // namespace tessera::internal
