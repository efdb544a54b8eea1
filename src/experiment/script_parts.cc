#include "experiment/script_parts.h"

#include <fmt/format.h>

namespace tessera {

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+%@";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_command(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += word.starts_with("--") ? " \\\n  " : " ";
    text += shell_word(word);
  }
  return text;
}

std::string shell_exports(const Values& environment) {
  std::string text;
  for (const auto& [name, given] : environment) text += fmt::format("export {}={}\n", name, shell_word(given.text));
  return text;
}

}  // namespace tessera
