// Named values that remember where they came from: settings, variables, resources. (no torch)
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

struct Given {
  std::string text;    // as a user writes it on a command line
  std::string origin;  // "ddp.json: multi_gpu/2_gpus", "preset code", "command line"
};

bool is_variable_name(std::string_view name);  // of a shell

// Kept in the order in which they were first given.
class Values {
 public:
  using Entry = std::pair<std::string, Given>;

  void set(const std::string& name, std::string text, std::string origin);
  void overlay(const Values& stronger);
  // Those that are not given yet, as defaults.
  void complete(const std::vector<std::pair<std::string, std::string>>& presets);
  void unset(std::string_view name);
  const Given* find(std::string_view name) const;  // null: not given
  bool has(std::string_view name) const { return find(name) != nullptr; }
  std::string text(std::string_view name) const;          // empty: not given
  std::string require_text(std::string_view name) const;  // throws UsageError
  // Throws UsageError, naming the origin, if it is no whole number of at least `least`.
  int count(std::string_view name, int least) const;

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  bool empty() const { return entries_.empty(); }

 private:
  std::vector<Entry> entries_;
};

}  // namespace tessera
