// Cuts shell text (job scripts, env files) into commands and words, as bash does: quotes, escapes, comments, lines
// continued by a backslash, redirections, here-documents. Nothing is expanded (shell_variables.h does that) and nothing
// is executed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct WordPart {
  enum class Kind {
    kText,
    kVariable,    // $NAME, ${NAME}, ${NAME[@]} (with the [@]), ${NAME:-word}
    kArithmetic,  // $((NAME * 2))
    kCommand,     // $(command), `command`: only a shell can know
    kOther,       // $?, $1, ${NAME%suffix}: not understood
  };
  Kind kind = Kind::kText;
  std::string text;                          // the text, the name, or what is between the brackets
  bool is_quoted = false;                    // its value stays in one word
  std::optional<std::string> fallback = {};  // of ${NAME:-fallback}, as written
  std::string source = {};                   // "$(hostname)", except of plain text
};

struct ShellWord {
  std::vector<WordPart> parts;
  std::vector<ShellWord> elements;  // of NAME=(...)
  bool is_array = false;
  std::size_t line = 1;

  std::optional<std::string> plain() const;     // if it is text alone
  std::optional<std::string> assigned() const;  // NAME or NAME+ of NAME=..., NAME+=...; nothing if it is no assignment
};

struct ShellCommand {
  std::vector<ShellWord> words;  // at least one
  char end = '\n';               // what ended it: a line break or one of ;&|()
  bool redirects = false;
};

enum class ShellQuotes { kAcrossLines, kWithinLine };  // kWithinLine: refused unless they close on the same line

// Commands in the order of the text; those in subshells, loops and conditions stand among them, with their reserved
// words ('if', 'then', ...) as first words. `origin` is what messages call the script. Throws UsageError with the line
// of a quote or bracket that is not closed.
std::vector<ShellCommand> split_shell(std::string_view text, const std::string& origin,
                                      ShellQuotes quotes = ShellQuotes::kAcrossLines);

// A text as between double quotes: one word, in which only variables and commands are cut out.
ShellWord split_quoted(std::string_view text, const std::string& origin);

bool begins_shell_name(char c);
bool is_in_shell_name(char c);

}  // namespace tessera
