#include "core/shell_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace tessera {
namespace {

bool is_shell_blank(char c) {
  return c == ' ' || c == '\t';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string with_unix_lines(std::string_view text) {
  std::string lines;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!text.substr(i).starts_with("\r\n")) lines += text[i];
  }
  return lines;
}

class ShellSplitter {
 public:
  ShellSplitter(std::string_view text, const std::string& origin, ShellQuotes quotes)
      : text_(with_unix_lines(text)), origin_(origin), quotes_(quotes) {}

  std::vector<ShellCommand> commands() {
    while (!at_end()) take_next();
    end_command('\n');
    if (!here_documents_.empty()) refuse(fmt::format("the here-document '{}' has no end", here_documents_.front()));
    return std::move(commands_);
  }

  ShellWord quoted() {
    ShellWord word;
    open_part(word, true);
    while (!at_end()) take_quoted_piece(word);
    return word;
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool sees(std::string_view what) const { return std::string_view(text_).substr(at_).starts_with(what); }
  char pass() {
    if (peek() == '\n') ++line_;
    return text_[at_++];
  }

  [[noreturn]] void refuse(const std::string& mistake, std::size_t line = 0) const {
    throw UsageError(fmt::format("{}:{}: {}", origin_, line == 0 ? line_ : line, mistake));
  }
  // Called while something is open.
  void check_open(std::string_view what, std::size_t line) const {
    const bool is_within_line = quotes_ == ShellQuotes::kWithinLine;
    if (!at_end() && !(is_within_line && peek() == '\n')) return;
    refuse(fmt::format("the {} that opens here is not closed{}", what, is_within_line ? " on the same line" : ""),
           line);
  }

  // A backslash at the end of a line: the next line continues it.
  bool passed_line_break() {
    if (!sees("\\\n")) return false;
    at_ += 2;
    ++line_;
    return true;
  }

  bool passed_comment() {
    if (peek() != '#') return false;
    at_ = std::min(text_.find('\n', at_), text_.size());
    return true;
  }

  void take_next() {
    const char c = peek();
    if (is_shell_blank(c)) {
      ++at_;
    } else if (c == '\n') {
      end_command('\n');
      pass();
      pass_here_documents();
    } else if (passed_comment() || passed_line_break()) {
      return;
    } else if (is_redirection()) {
      pass_redirection();
    } else if (sees("((") && may_begin_command()) {
      pass_brackets("((", "))");
    } else if (c == ';' || c == '&' || c == '|' || c == '(' || c == ')') {
      end_command(c);
      at_ += peek(1) == c && c != '(' && c != ')' ? 2 : 1;
    } else {
      current_.words.push_back(take_word());
    }
  }

  // Behind `if`, as at the beginning, (( is arithmetic and not two brackets.
  bool may_begin_command() const {
    if (current_.words.empty()) return true;
    const std::string word = current_.words.back().plain().value_or("");
    return word == "if" || word == "elif" || word == "while" || word == "until" || word == "for" || word == "!";
  }

  void end_command(char end) {
    if (!current_.words.empty()) {
      current_.end = end;
      commands_.push_back(std::move(current_));
    }
    current_ = {};
  }

  // '>', '2>', '&>' and the like; '<(' and '>(' are words.
  bool is_redirection() const {
    std::size_t ahead = 0;
    while (is_digit(peek(ahead))) ++ahead;
    if (ahead == 0 && peek() == '&' && peek(1) == '>') return true;
    return (peek(ahead) == '<' || peek(ahead) == '>') && peek(ahead + 1) != '(';
  }

  void pass_redirection() {
    while (is_digit(peek())) ++at_;
    current_.redirects = true;
    const bool is_string = sees("<<<");
    const bool is_document = sees("<<") && !is_string;
    while (peek() == '<' || peek() == '>' || peek() == '&' || (peek() == '|' && text_[at_ - 1] == '>')) ++at_;
    if (is_document && peek() == '-') ++at_;
    while (is_shell_blank(peek())) ++at_;
    if (at_end() || peek() == '\n') refuse("expected a file after the redirection");
    const ShellWord target = take_word();
    if (is_document) here_documents_.push_back(target.plain().value_or(""));
  }

  void pass_here_documents() {
    while (!here_documents_.empty() && !at_end()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      const std::string_view line = trim(std::string_view(text_).substr(at_, end - at_));
      if (line == here_documents_.front()) here_documents_.erase(here_documents_.begin());
      at_ = std::min(end + 1, text_.size());
      ++line_;
    }
  }

  static bool ends_word(char c) {
    return is_shell_blank(c) || std::string_view("\n;&|()<>").find(c) != std::string_view::npos;
  }

  ShellWord take_word() {
    ShellWord word;
    word.line = line_;
    while (!at_end()) {
      const char c = peek();
      if (c == '(' && is_array_name(word) && !is_in_array_) {
        take_array(word);
      } else if ((c == '<' || c == '>') && peek(1) == '(' && word.parts.empty()) {
        const std::size_t begin = at_++;
        add_command(word, false, begin);
      } else if (ends_word(c)) {
        break;
      } else if (passed_line_break()) {
        continue;
      } else if (c == '\\') {
        ++at_;
        if (!at_end()) add(word, true, pass());
      } else if (c == '\'' || c == '"' || sees("$'") || sees("$\"")) {
        take_quotes(word);
      } else if (c == '$' || c == '`') {
        take_expansion(word, false);
      } else {
        add(word, false, pass());
      }
    }
    return word;
  }

  static bool is_array_name(const ShellWord& word) {
    return word.parts.size() == 1 && word.parts[0].kind == WordPart::Kind::kText && !word.parts[0].is_quoted &&
           word.parts[0].text.ends_with('=') && begins_shell_name(word.parts[0].text[0]);
  }

  void take_array(ShellWord& word) {
    const std::size_t line = line_;
    word.is_array = is_in_array_ = true;
    for (++at_; peek() != ')';) {
      check_open("(", line);
      if (passed_comment() || passed_line_break()) continue;
      if (is_shell_blank(peek()) || peek() == '\n') {
        pass();
      } else if (ends_word(peek())) {
        refuse(fmt::format("'{}' is not understood within an array", peek()));
      } else {
        word.elements.push_back(take_word());
      }
    }
    is_in_array_ = false;
    ++at_;
  }

  static void open_part(ShellWord& word, bool is_quoted) {
    if (word.parts.empty() || word.parts.back().kind != WordPart::Kind::kText ||
        word.parts.back().is_quoted != is_quoted) {
      word.parts.push_back({WordPart::Kind::kText, "", is_quoted});
    }
  }
  static void add(ShellWord& word, bool is_quoted, char c) {
    open_part(word, is_quoted);
    word.parts.back().text += c;
  }

  void take_quotes(ShellWord& word) {
    const std::size_t line = line_;
    if (peek() == '$') ++at_;
    const char quote = pass();
    open_part(word, true);
    while (peek() != quote) {
      check_open(fmt::format("quote {}", quote), line);
      if (quote == '"') {
        take_quoted_piece(word);
      } else {
        add(word, true, pass());
      }
    }
    ++at_;
  }

  void take_quoted_piece(ShellWord& word) {
    if (peek() == '$' || peek() == '`') {
      take_expansion(word, true);
    } else if (!passed_line_break()) {
      if (peek() == '\\' && at_ + 1 < text_.size() && std::string_view("\"\\$`").find(peek(1)) != std::string::npos)
        ++at_;
      add(word, true, pass());
    }
  }

  void take_expansion(ShellWord& word, bool is_quoted) {
    const std::size_t begin = at_;
    if (pass() == '`') {
      const std::size_t line = line_;
      for (; peek() != '`'; pass()) check_open("quote `", line);
      ++at_;
      put(word, WordPart::Kind::kCommand, text_.substr(begin + 1, at_ - begin - 2), is_quoted, begin);
    } else if (sees("((")) {
      pass_brackets("((", "))");
      put(word, WordPart::Kind::kArithmetic, text_.substr(begin + 3, at_ - begin - 5), is_quoted, begin);
    } else if (peek() == '(') {
      add_command(word, is_quoted, begin);
    } else if (peek() == '{') {
      pass_brackets("{", "}");
      take_braces(word, text_.substr(begin + 2, at_ - begin - 3), is_quoted, begin);
    } else if (begins_shell_name(peek())) {
      while (is_in_shell_name(peek())) ++at_;
      put(word, WordPart::Kind::kVariable, text_.substr(begin + 1, at_ - begin - 1), is_quoted, begin);
    } else if (is_in_shell_name(peek()) ||
               (!at_end() && std::string_view("@*#?!$-").find(peek()) != std::string::npos)) {
      ++at_;
      put(word, WordPart::Kind::kOther, "", is_quoted, begin);
    } else {
      add(word, is_quoted, '$');
    }
  }

  void add_command(ShellWord& word, bool is_quoted, std::size_t begin) {
    const std::size_t inner = at_ + 1;
    pass_brackets("(", ")");
    put(word, WordPart::Kind::kCommand, text_.substr(inner, at_ - inner - 1), is_quoted, begin);
  }

  void put(ShellWord& word, WordPart::Kind kind, std::string text, bool is_quoted, std::size_t begin) {
    word.parts.push_back({kind, std::move(text), is_quoted, std::nullopt, text_.substr(begin, at_ - begin)});
  }

  // What is between ${ and }.
  void take_braces(ShellWord& word, const std::string& inner, bool is_quoted, std::size_t begin) {
    std::size_t end = 0;
    while (end < inner.size() && is_in_shell_name(inner[end])) ++end;
    const std::string rest = inner.substr(end);
    if (end == 0 || !begins_shell_name(inner[0])) return put(word, WordPart::Kind::kOther, inner, is_quoted, begin);
    if (rest.empty()) return put(word, WordPart::Kind::kVariable, inner, is_quoted, begin);
    if (rest == "[@]" || rest == "[*]") {
      return put(word, WordPart::Kind::kVariable, inner.substr(0, end) + "[@]", is_quoted, begin);
    }
    for (const char* form : {":-", ":=", "-", "="}) {
      if (!rest.starts_with(form)) continue;
      put(word, WordPart::Kind::kVariable, inner.substr(0, end), is_quoted, begin);
      word.parts.back().fallback = rest.substr(std::string_view(form).size());
      return;
    }
    put(word, WordPart::Kind::kOther, inner, is_quoted, begin);
  }

  // From an opening bracket to behind the one that closes it, over quotes and inner brackets.
  void pass_brackets(std::string_view open, std::string_view close) {
    const std::size_t line = line_;
    int depth = 0;
    do {
      check_open(open, line);
      if (peek() == '\\') {
        pass();
        if (!at_end()) pass();
      } else if (peek() == '\'' || peek() == '"') {
        pass_quotes(pass());
      } else if (sees(open)) {
        ++depth;
        at_ += open.size();
      } else if (sees(close) && !(open == "((" && depth == 1 && sees(")))"))) {
        // Within $(( (a + b))) the first of three closing brackets belongs to the inner one.
        --depth;
        at_ += close.size();
      } else {
        pass();
      }
    } while (depth > 0);
  }

  void pass_quotes(char quote) {
    const std::size_t line = line_;
    while (peek() != quote || at_end()) {
      check_open(fmt::format("quote {}", quote), line);
      if (peek() == '\\' && quote == '"' && at_ + 1 < text_.size()) pass();
      pass();
    }
    pass();
  }

  std::string text_, origin_;
  ShellQuotes quotes_;
  std::size_t at_ = 0, line_ = 1;
  bool is_in_array_ = false;
  ShellCommand current_;
  std::vector<ShellCommand> commands_;
  std::vector<std::string> here_documents_;
};

}  // namespace

bool begins_shell_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_in_shell_name(char c) {
  return begins_shell_name(c) || is_digit(c);
}

std::optional<std::string> ShellWord::plain() const {
  std::string text;
  for (const WordPart& part : parts) {
    if (part.kind != WordPart::Kind::kText) return std::nullopt;
    text += part.text;
  }
  return text;
}

std::optional<std::string> ShellWord::assigned() const {
  if (parts.empty() || parts[0].kind != WordPart::Kind::kText || parts[0].is_quoted) return std::nullopt;
  const std::string& text = parts[0].text;
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || !begins_shell_name(text[0])) return std::nullopt;
  const std::size_t end = text[equals - 1] == '+' ? equals - 1 : equals;
  if (!std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), is_in_shell_name))
    return std::nullopt;
  return text.substr(0, equals);
}

std::vector<ShellCommand> split_shell(std::string_view text, const std::string& origin, ShellQuotes quotes) {
  return ShellSplitter(text, origin, quotes).commands();
}

ShellWord split_quoted(std::string_view text, const std::string& origin) {
  return ShellSplitter(text, origin, ShellQuotes::kAcrossLines).quoted();
}

}  // namespace tessera
