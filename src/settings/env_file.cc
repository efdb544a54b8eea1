#include "settings/env_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace tessera {

namespace {

bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool continues_name(char c) {
  return starts_name(c) || (c >= '0' && c <= '9');
}
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& origin, const Environment& environment)
      : text_(text), origin_(origin), environment_(environment) {}

  std::vector<EnvFileEntry> run() {
    if (const std::size_t nul = text_.find('\0'); nul != std::string_view::npos)
      refuse("expected text, found a NUL byte");
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    while (at_ < text_.size()) parse_line();
    return std::move(entries_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\n'; }
  bool at_end_of_line() const { return peek() == '\n'; }

  void skip_blanks() {
    while (is_blank(peek()) || is_continuation()) {
      if (is_continuation())
        pass_continuation();
      else
        ++at_;
    }
  }
  bool is_continuation() const { return peek() == '\\' && at_ + 1 < text_.size() && peek(1) == '\n'; }
  void pass_continuation() {
    at_ += 2;
    ++line_;
  }
  void skip_comment() {
    while (!at_end_of_line()) ++at_;
  }

  bool pass_export() {
    const bool is_there = text_.substr(at_).starts_with("export") && is_blank(peek(6));
    if (is_there) at_ += 6;
    return is_there;
  }

  void parse_line() {
    skip_blanks();
    bool exports = pass_export();
    for (skip_blanks(); !at_end_of_line() && peek() != '#'; skip_blanks()) {
      if (peek() == ';') {
        ++at_;  // the next command of the line
        skip_blanks();
        exports = pass_export();
        continue;
      }
      parse_assignment(exports);
      if (!is_blank(peek()) && peek() != ';' && !at_end_of_line() && !is_continuation())
        refuse("expected a space after the value");
    }
    skip_comment();
    ++at_;
    ++line_;
  }

  void parse_assignment(bool exports) {
    const std::size_t begin = at_;
    if (starts_name(peek())) {
      while (continues_name(peek())) ++at_;
    }
    const std::string name(text_.substr(begin, at_ - begin));
    const bool ends_here = at_end_of_line() || is_blank(peek()) || peek() == ';';
    if (exports && !name.empty() && ends_here) return;  // `export NAME` changes no value
    if (name.empty() || peek() != '=') refuse_line(begin);
    ++at_;
    entry_ = {name, "", line_, ""};
    parse_value();
    known_[name] = entry_.value;
    entries_.push_back(entry_);
  }

  void parse_value() {
    if (peek() == '~' && (peek(1) == '/' || is_blank(peek(1)) || peek(1) == '\n')) {
      ++at_;
      add(value_of("HOME"));
    }
    while (!at_end_of_line() && !is_blank(peek()) && peek() != ';') {
      const char c = peek();
      if (c == '\'') {
        parse_single_quotes();
      } else if (c == '"') {
        parse_double_quotes();
      } else if (c == '$') {
        parse_dollar();
      } else if (c == '`') {
        pass_backquotes();
      } else if (c == '\\') {
        if (is_continuation()) break;
        ++at_;
        if (!at_end_of_line()) add(text_[at_++]);
      } else if (c == '|' || c == '&' || c == '<' || c == '>' || c == '(' || c == ')') {
        entry_.unknown = fmt::format("'{}' has a meaning to the shell; quote or remove it", c);
        skip_comment();
      } else {
        add(c);
        ++at_;
      }
    }
  }

  void parse_single_quotes() {
    const std::size_t end = text_.find_first_of("'\n", at_ + 1);
    if (end == std::string_view::npos || text_[end] != '\'') refuse_open_quote('\'');
    add(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
  }

  void parse_double_quotes() {
    ++at_;
    while (peek() != '"') {
      if (at_end_of_line()) refuse_open_quote('"');
      if (peek() == '$') {
        parse_dollar();
      } else if (peek() == '`') {
        pass_backquotes();
      } else {
        if (peek() == '\\' && std::string_view("\"\\$`").find(peek(1)) != std::string_view::npos) ++at_;
        add(text_[at_++]);
      }
    }
    ++at_;
  }

  void parse_dollar() {
    ++at_;
    if (peek() == '(') {
      pass_command();
    } else if (peek() == '{') {
      parse_braces();
    } else if (starts_name(peek())) {
      add(value_of(take_name()));
    } else if (continues_name(peek()) || std::string_view("@*#?!$-").find(peek()) != std::string_view::npos) {
      ++at_;
      entry_.unknown = "it uses a shell's own variable";
    } else {
      add('$');
    }
  }

  void parse_braces() {
    ++at_;
    const std::string name = take_name();
    const std::size_t end = text_.find_first_of("}\n", at_);
    if (end == std::string_view::npos || text_[end] != '}') refuse_open_quote('{');
    const std::string_view rest = text_.substr(at_, end - at_);
    at_ = end + 1;
    const bool is_plain_default = rest.starts_with(":-") && rest.find_first_of("$`'\"\\{") == std::string_view::npos;
    if (name.empty() || (!rest.empty() && !is_plain_default)) {
      entry_.unknown = "only ${NAME} and ${NAME:-word} are understood";
    } else if (is_plain_default) {
      const std::string value = find(name).value_or("");
      add(value.empty() ? std::string(rest.substr(2)) : value);
    } else {
      add(value_of(name));
    }
  }

  // Lines such as A=$A$A$A grow a value without bound: no setting is that long.
  void add(std::string_view text) {
    constexpr std::size_t kMaxBytes = 65536;
    entry_.value += text;
    if (entry_.value.size() > kMaxBytes)
      refuse(fmt::format("the value of {} has more than {} bytes", entry_.name, kMaxBytes));
  }
  void add(char c) { add(std::string_view(&c, 1)); }

  std::string take_name() {
    const std::size_t begin = at_;
    if (starts_name(peek())) {
      while (continues_name(peek())) ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  // Skips to the closing bracket on the same line, without reading what is inside.
  void pass_command() {
    entry_.unknown = "$(...) would have to be executed";
    int depth = 0;
    do {
      if (at_end_of_line()) refuse_open_quote('(');
      depth += peek() == '(' ? 1 : peek() == ')' ? -1 : 0;
      ++at_;
    } while (depth > 0);
  }

  void pass_backquotes() {
    entry_.unknown = "`...` would have to be executed";
    const std::size_t end = text_.find_first_of("`\n", at_ + 1);
    if (end == std::string_view::npos || text_[end] != '`') refuse_open_quote('`');
    at_ = end + 1;
  }

  std::optional<std::string> find(const std::string& name) const {
    if (const auto found = known_.find(name); found != known_.end()) return found->second;
    return environment_.find(name);
  }

  std::string value_of(const std::string& name) {
    const std::optional<std::string> value = find(name);
    if (!value) entry_.unknown = fmt::format("${} is set neither earlier in the file nor in the environment", name);
    const auto cause = std::find_if(entries_.rbegin(), entries_.rend(), [&](const auto& e) { return e.name == name; });
    if (cause != entries_.rend() && !cause->unknown.empty()) entry_.unknown = cause->unknown;
    return value.value_or("");
  }

  [[noreturn]] void refuse(const std::string& mistake) const {
    throw UsageError(fmt::format("{}:{}: {}", origin_, line_, mistake));
  }
  [[noreturn]] void refuse_open_quote(char quote) const {
    refuse(fmt::format("{} is not closed on the same line, in the value of {}", quote, entry_.name));
  }
  // Only the first word is shown: what follows may be a secret.
  [[noreturn]] void refuse_line(std::size_t begin) const {
    const std::string_view rest = text_.substr(begin, text_.find('\n', begin) - begin);
    const std::string word = printable(trim(rest.substr(0, rest.find_first_of(" \t=;"))), 40);
    refuse(fmt::format("expected export NAME=value, found '{}'; such files are read, never executed", word));
  }

  std::string_view text_;
  const std::string& origin_;
  const Environment& environment_;
  std::size_t at_ = 0, line_ = 1;
  EnvFileEntry entry_;
  std::vector<EnvFileEntry> entries_;
  std::map<std::string, std::string> known_;
};

bool is_for_others(const std::string& name) {
  return name == "WANDB_API_KEY" || name.starts_with("CONDA_");
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<EnvFileEntry> parse_env_file(std::string_view text, const std::string& origin,
                                         const Environment& environment) {
  return Parser(text, origin, environment).run();
}

void read_env_file(const std::string& path, const Environment& environment,
                   const std::map<std::string, std::string>& elsewhere, Schema& schema,
                   std::vector<std::string>& notes) {
  const std::vector<std::string> names = schema.environment_names();
  std::map<std::string, EnvFileEntry> last;
  std::set<std::string> ignored;
  std::map<std::string, std::set<std::string>> of_jobs;
  for (EnvFileEntry& entry : parse_env_file(read_file(path), path, environment)) {
    if (has(names, entry.name)) {
      last[entry.name] = std::move(entry);
    } else if (const auto job = elsewhere.find(entry.name); job != elsewhere.end()) {
      of_jobs[job->second].insert(entry.name);
    } else if (!is_for_others(entry.name)) {
      const auto meant = nearest(entry.name, names);
      ignored.insert(entry.name + (meant ? fmt::format(" (did you mean {}?)", *meant) : ""));
    }
  }
  Environment variables;
  for (const auto& [name, entry] : last) {
    if (!entry.unknown.empty()) {
      throw UsageError(fmt::format("{}:{}: the value of {} is unknown: {}", path, entry.line, name, entry.unknown));
    }
    variables.set(name, entry.value);
  }
  schema.read_env_file(variables, path);
  for (const auto& [job, variables_of_job] : of_jobs) {
    notes.push_back(fmt::format("{}: ignored, settings of {}: {}", path, job,
                                join({variables_of_job.begin(), variables_of_job.end()}, ", ")));
  }
  if (!ignored.empty()) {
    notes.push_back(fmt::format("{}: ignored, not settings: {}", path, join({ignored.begin(), ignored.end()}, ", ")));
  }
}

}  // namespace tessera
