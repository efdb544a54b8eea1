// val_annotations.txt of TinyImageNet: one line per picture with its file, its class and a box that classification does
// not need, separated by tabs. A byte order mark, CRLF and empty lines are accepted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/images/image_folder.h"

namespace tessera {

// The pictures in the order of the lines; a path is `folder`, a slash and the file. `files`, sorted, are the JPEGs
// present: each must have one line. Throws UsageError naming `origin` and the line.
std::vector<ImageItem> parse_val_annotations(std::string_view text, const std::string& origin,
                                             const std::vector<std::string>& classes,
                                             const std::vector<std::string>& files, const std::string& folder);

}  // namespace tessera
