#include "data/images/val_annotations.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

std::vector<ImageItem> parse_val_annotations(std::string_view text, const std::string& origin,
                                             const std::vector<std::string>& classes,
                                             const std::vector<std::string>& files, const std::string& folder) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::unordered_map<std::string_view, std::int64_t> number;
  for (const std::string& name : classes) number.emplace(name, std::ssize(number));
  std::unordered_map<std::string_view, std::size_t> line_of;
  for (const std::string& name : files) line_of.emplace(name, 0);

  std::vector<ImageItem> items;
  std::size_t line_number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++line_number;
    if (trim(line).empty()) continue;
    const auto refuse = [&](const std::string& what) {
      throw UsageError(fmt::format("{}:{}: {}", origin, line_number, what));
    };
    const std::vector<std::string> fields = split(trim(line), '\t');
    if (fields.size() < 2) refuse("expected a file name, a tab and a class, found '" + printable(line) + "'");
    const auto label = number.find(fields[1]);
    if (label == number.end()) refuse("class '" + printable(fields[1]) + "' has no folder in train/");
    const auto file = line_of.find(fields[0]);
    if (file == line_of.end()) refuse(fmt::format("'{}' is not a JPEG in {}", printable(fields[0]), folder));
    if (file->second != 0) {
      refuse(fmt::format("'{}' is listed twice, first in line {}", printable(fields[0]), file->second));
    }
    file->second = line_number;
    items.push_back({folder + "/" + fields[0], label->second});
  }

  if (items.size() < files.size()) {
    const auto first = std::find_if(files.begin(), files.end(), [&](const auto& name) { return line_of[name] == 0; });
    throw UsageError(fmt::format("{} has no line for {} of the JPEGs in {}, such as {}", origin,
                                 files.size() - items.size(), folder, printable(*first)));
  }
  if (items.empty()) throw UsageError(fmt::format("{} lists no pictures, and {} holds none", origin, folder));
  return items;
}

}  // namespace tessera
