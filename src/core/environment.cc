#include "core/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

Environment Environment::of_process() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    // If a name occurs twice, getenv() returns the first: so do we.
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return Environment(std::move(variables));
}

std::optional<std::string> Environment::find(const std::string& name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::optional<int> Environment::find_count(const std::string& name) const {
  const std::optional<std::string> text = find(name);
  if (!text) return std::nullopt;
  const std::optional<long long> value = parse_integer(*text);
  if (!value || *value < 0 || *value > std::numeric_limits<int>::max()) {
    throw UsageError(fmt::format("{}={} in the environment: expected a whole number of at least 0", name, *text));
  }
  return static_cast<int>(*value);
}

std::optional<std::filesystem::path> config_folder(const Environment& environment) {
  if (const auto config = environment.find("XDG_CONFIG_HOME")) return std::filesystem::path(*config) / "tessera";
  if (const auto home = environment.find("HOME")) return std::filesystem::path(*home) / ".config" / "tessera";
  return std::nullopt;
}

void check_thread_count(const Environment& environment) {
  const auto given = environment.find("OMP_NUM_THREADS");
  if (!given) return;
  // More than four per processor only wait for each other; a host's limits allow a thousand.
  const long long most = std::max<long long>(1024, 4 * sysconf(_SC_NPROCESSORS_CONF));
  for (const std::string& part : split(*given, ',')) {
    const auto number = parse_integer(trim(part));
    if (number && *number >= 1 && *number <= most) continue;
    throw UsageError(fmt::format("OMP_NUM_THREADS={} in the environment: expected a number of threads from 1 to {}",
                                 printable(*given), most));
  }
}

}  // namespace tessera
