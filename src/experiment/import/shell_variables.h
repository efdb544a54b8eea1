// A script's variables as far as they can be known without a shell, and the words that follow from them. (no torch)
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiment/import/shell_split.h"

namespace tessera {

// A value, or why it is not known; the text then shows what the script has: "$(hostname)".
struct ShellValue {
  std::string text;
  std::string unknown = {};
  std::vector<ShellValue> pieces = {};  // of a value that is known in part; empty: it is one piece

  bool is_known() const { return unknown.empty(); }
  void append(const ShellValue& more);
};

class ShellVariables {
 public:
  struct Variable {
    std::vector<ShellValue> values;  // one, or an array's elements
    bool is_exported = false;
    std::string place;  // "env_vars.sh:3"
  };

  void set(const std::string& name, std::vector<ShellValue> values, const std::string& place);
  void mark_exported(const std::string& name);  // also before it has a value
  void unset(const std::string& name);
  const Variable* find(const std::string& name) const;  // null: not set
  const std::map<std::string, Variable>& all() const { return variables_; }

  // The words that one word becomes: none for an empty variable, several for one with blanks.
  std::vector<ShellValue> expand(const ShellWord& word) const;
  // What follows a NAME=: stays in one piece.
  ShellValue expand_whole(const ShellWord& word) const;
  // The elements of NAME=(...).
  std::vector<ShellValue> expand_elements(const ShellWord& word) const;

 private:
  std::vector<ShellValue> values_of(const WordPart& part) const;
  ShellValue value_of_arithmetic(const WordPart& part) const;

  std::map<std::string, Variable> variables_;
};

}  // namespace tessera
