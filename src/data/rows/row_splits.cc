#include "data/rows/row_splits.h"

#include <fmt/format.h>

#include <array>
#include <regex>
#include <string_view>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

struct SplitWord {
  std::string_view word, split;
};
constexpr std::array<SplitWord, 10> kSplitWords = {{{"train", "train"},
                                                    {"training", "train"},
                                                    {"validation", "validation"},
                                                    {"valid", "validation"},
                                                    {"dev", "validation"},
                                                    {"val", "validation"},
                                                    {"test", "test"},
                                                    {"testing", "test"},
                                                    {"eval", "test"},
                                                    {"evaluation", "test"}}};

// The first of these words in "alpaca_eval-00000.json", whose words are alpaca, eval and json.
std::string split_in_words(std::string_view name) {
  constexpr std::string_view kBetweenWords = "-._ 0123456789";
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find_first_of(kBetweenWords, begin), name.size());
    for (const auto& [word, split] : kSplitWords) {
      if (name.substr(begin, end - begin) == word) return std::string(split);
    }
    begin = end + 1;
  }
  return "";
}

}  // namespace

std::string split_in_name(const fs::path& file) {
  static const std::regex shard(R"((\w+(?:\.\w+)*)-\d{5}-of-\d{5}.*\..*)");
  const std::string name = file.filename().string();
  std::smatch match;
  if (file.parent_path().filename() == "data" && std::regex_match(name, match, shard)) return match[1];
  for (const fs::path& folder : file.parent_path()) {
    if (std::string split = split_in_words(folder.string()); !split.empty()) return split;
  }
  return split_in_words(name);
}

std::string split_in_cached_name(const fs::path& file) {
  static const std::regex shard(R"(-\d{5}-of-\d{5}$)");
  const std::string stem = std::regex_replace(file.stem().string(), shard, "");
  const std::size_t dash = stem.rfind('-');
  return dash == std::string::npos ? "" : stem.substr(dash + 1);
}

const std::vector<fs::path>& choose_split(const FilesBySplit& files, const std::string& split,
                                          const std::string& place) {
  const bool is_one = files.size() == 1;
  if (is_one && (split.empty() || files.begin()->first.empty())) return files.begin()->second;
  const std::string wanted = split.empty() ? "train" : split;
  if (const auto found = files.find(wanted); found != files.end()) return found->second;
  if (const auto unnamed = files.find(""); wanted == "train" && unnamed != files.end()) return unnamed->second;
  std::vector<std::string> there;
  for (const auto& [name, of_split] : files) {
    if (!name.empty()) there.push_back(name);
  }
  throw UsageError(
      fmt::format("{} has no split {}; there is {}: name the files", place, printable(wanted, 40), listed(there)));
}

}  // namespace tessera
