// Environment variables as a value, so that code that depends on them can be tested without setting any, and what
// Tessera itself reads from them.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace tessera {

class Environment {
 public:
  Environment() = default;
  explicit Environment(std::map<std::string, std::string> variables) : variables_(std::move(variables)) {}
  // So that one pair is not ambiguous: Environment({{"RANK", "0"}}).
  explicit Environment(std::initializer_list<std::pair<const std::string, std::string>> variables)
      : variables_(variables) {}

  static Environment of_process();

  // Set and not empty: an empty variable counts as unset, which is what people mean by it.
  std::optional<std::string> find(const std::string& name) const;
  // Like find, for a whole number of at least 0; anything else throws UsageError with name and value.
  std::optional<int> find_count(const std::string& name) const;
  void set(const std::string& name, const std::string& value) { variables_[name] = value; }
  void unset(const std::string& name) { variables_.erase(name); }

  const std::map<std::string, std::string>& all() const { return variables_; }

 private:
  std::map<std::string, std::string> variables_;
};

// Where a user's own files of Tessera lie: $XDG_CONFIG_HOME/tessera, else ~/.config/tessera; nothing if neither
// variable is set.
std::optional<std::filesystem::path> config_folder(const Environment& environment);

// Throws UsageError unless OMP_NUM_THREADS is unset, or one or more numbers of threads (`4`, `4,2`) that a host can
// start: libgomp ends the process at the first parallel loop, without a word about the variable, where it cannot start
// them.
void check_thread_count(const Environment& environment);

}  // namespace tessera
