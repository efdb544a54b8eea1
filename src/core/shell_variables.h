// Shell variables as far as they can be known without a shell, and the words that follow from them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/environment.h"
#include "core/shell_words.h"

namespace tessera {

// A value, or why it is not known; the text then shows what the script has: "$(hostname)".
struct ShellValue {
  std::string text;
  std::string unknown = {};
  std::vector<ShellValue> pieces = {};  // of a value that is known in part; empty: it is one piece

  bool is_known() const { return unknown.empty(); }
  void append(const ShellValue& more);
};

using ShellValues = std::vector<ShellValue>;

class ShellVariables {
 public:
  // Names that are not set are looked up in `environment`, if given; it must outlive this.
  explicit ShellVariables(const Environment* environment = nullptr) : environment_(environment) {}

  struct Variable {
    ShellValues values;  // one, or an array's elements
    bool is_exported = false;
    std::string place;  // "env_vars.sh:3"
  };

  void set(const std::string& name, ShellValues values, const std::string& place);
  void mark_exported(const std::string& name) { variables_[name].is_exported = true; }  // also before it has a value
  void unset(const std::string& name) { variables_.erase(name); }
  const Variable* find(const std::string& name) const;  // null: not set
  const std::map<std::string, Variable>& all() const { return variables_; }

  // The words that one word becomes: none for an empty variable, several for one with blanks.
  ShellValues expand(const ShellWord& word) const;
  // As between double quotes: one piece.
  ShellValue expand_whole(const ShellWord& word) const;
  // What follows NAME= in such a word: one value, or the elements of NAME=(...).
  ShellValues expand_assigned(ShellWord word) const;

 private:
  ShellValues values_of(const WordPart& part) const;
  ShellValue value_of_arithmetic(const WordPart& part) const;
  ShellValues values_outside(const WordPart& part, const std::string& name) const;

  const Environment* environment_;
  std::map<std::string, Variable> variables_;
};

// What $((...)) computes: whole numbers, names, + - * / % and brackets. Nothing for a text that is not understood, a
// name without a number, or a division by zero.
std::optional<long long> shell_arithmetic(std::string_view text,
                                          const std::function<std::optional<long long>(const std::string&)>& value_of);

}  // namespace tessera
