// val_annotations.txt of TinyImageNet: a line a picture, its file, its class and a box that classification does not
// need, separated by tabs. A byte order mark, CRLF and empty lines are taken.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/images/image_folder.h"

namespace tessera {

// The pictures in the order of the lines; a path is `folder`, a slash and the file. `files`, sorted, are the JPEGs
// that there are: each must have one line. Throws UsageError that names `origin` and the line.
std::vector<ImageItem> parse_val_annotations(std::string_view text, const std::string& origin,
                                             const std::vector<std::string>& classes,
                                             const std::vector<std::string>& files, const std::string& folder);

}  // namespace tessera
