#include "experiment/values.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/shell_words.h"
#include "core/text.h"

namespace tessera {

bool is_variable_name(std::string_view name) {
  return !name.empty() && begins_shell_name(name[0]) && std::all_of(name.begin(), name.end(), is_in_shell_name);
}

void Values::set(const std::string& name, std::string text, std::string origin) {
  for (Entry& entry : entries_) {
    if (entry.first != name) continue;
    entry.second = {std::move(text), std::move(origin)};
    return;
  }
  entries_.push_back({name, {std::move(text), std::move(origin)}});
}

void Values::overlay(const Values& stronger) {
  for (const auto& [name, given] : stronger) set(name, given.text, given.origin);
}

void Values::complete(const std::vector<std::pair<std::string, std::string>>& presets) {
  for (const auto& [name, text] : presets) {
    if (!has(name)) set(name, text, "default");
  }
}

void Values::unset(std::string_view name) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.first == name; });
}

const Given* Values::find(std::string_view name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.first == name; });
  return found == entries_.end() ? nullptr : &found->second;
}

std::string Values::text(std::string_view name) const {
  const Given* given = find(name);
  return given == nullptr ? "" : given->text;
}

std::string Values::require_text(std::string_view name) const {
  const Given* given = find(name);
  if (given == nullptr || given->text.empty()) throw UsageError(fmt::format("'{}' is missing", name));
  return given->text;
}

int Values::count(std::string_view name, int least) const {
  require_text(name);
  const Given& given = *find(name);
  const auto number = parse_integer(given.text);
  if (!number || *number < least || *number > 30'000) {
    throw UsageError(fmt::format("{}: {} = '{}': expected a whole number from {} to 30000", given.origin, name,
                                 printable(given.text, 40), least));
  }
  return static_cast<int>(*number);
}

}  // namespace tessera
