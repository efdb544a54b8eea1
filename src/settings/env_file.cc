#include "settings/env_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "core/shell_variables.h"
#include "core/text.h"

namespace tessera {

namespace {

class EnvFileReader {
 public:
  EnvFileReader(const std::string& origin, const Environment& environment)
      : origin_(origin), variables_(&environment) {}

  std::vector<EnvFileEntry> read(std::string_view text) {
    if (text.find('\0') != std::string_view::npos) refuse(1, "expected text, found a NUL byte");
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    for (const ShellCommand& command : split_shell(text, origin_, ShellQuotes::kWithinLine)) read_command(command);
    return std::move(entries_);
  }

 private:
  void read_command(const ShellCommand& command) {
    const bool exports = command.words[0].plain() == "export";
    for (std::size_t i = exports ? 1 : 0; i < command.words.size(); ++i) {
      const ShellWord& word = command.words[i];
      if (const auto name = word.assigned(); name && !name->ends_with('+')) {
        read_assignment(*name, word);
      } else if (!exports || !is_name(word.plain().value_or(""))) {  // `export NAME` changes no value
        refuse_word(word);
      }
    }
    const bool has_operator = command.end != '\n' && command.end != ';';
    if (!entries_.empty() && (has_operator || command.redirects)) {
      mark_unknown(fmt::format("'{}' has a meaning to the shell; quote or remove it",
                               has_operator ? std::string(1, command.end) : "< or >"));
    }
  }

  void read_assignment(const std::string& name, const ShellWord& word) {
    try {
      variables_.set(name, variables_.expand_assigned(word), origin_);
    } catch (const UsageError& error) {
      refuse(word.line, fmt::format("{}: {}", name, error.what()));
    }
    const ShellVariables::Variable* variable = variables_.find(name);
    const ShellValue value = variable == nullptr ? ShellValue{} : variable->values[0];
    entries_.push_back({name, value.text, word.line, value.unknown});
    if (word.is_array) mark_unknown("'(' has a meaning to the shell; quote or remove it");
  }

  void mark_unknown(const std::string& why) {
    entries_.back().unknown = why;
    variables_.set(entries_.back().name, {{"", why}}, origin_);
  }

  static bool is_name(const std::string& text) {
    return !text.empty() && begins_shell_name(text[0]) && std::ranges::all_of(text, is_in_shell_name);
  }

  [[noreturn]] void refuse(std::size_t line, const std::string& mistake) const {
    throw UsageError(fmt::format("{}:{}: {}", origin_, line, mistake));
  }
  // Only the beginning is shown: what follows may be a secret.
  [[noreturn]] void refuse_word(const ShellWord& word) const {
    const std::string text = word.parts.empty() ? "" : word.parts[0].text;
    refuse(word.line, fmt::format("expected export NAME=value, found '{}'; such files are read, never executed",
                                  printable(text.substr(0, text.find('=')), 40)));
  }

  const std::string& origin_;
  ShellVariables variables_;
  std::vector<EnvFileEntry> entries_;
};

bool is_for_others(const std::string& name) {
  return name == "WANDB_API_KEY" || name.starts_with("CONDA_");
}

}  // namespace

std::vector<EnvFileEntry> parse_env_file(std::string_view text, const std::string& origin,
                                         const Environment& environment) {
  return EnvFileReader(origin, environment).read(text);
}

void read_env_file(const std::string& path, const Environment& environment,
                   const std::map<std::string, std::string>& elsewhere, Schema& schema,
                   std::vector<std::string>& notes) {
  const std::vector<std::string> names = schema.environment_names();
  std::map<std::string, EnvFileEntry> last;
  std::set<std::string> ignored;
  std::map<std::string, std::set<std::string>> of_jobs;
  for (EnvFileEntry& entry : parse_env_file(read_file(path), path, environment)) {
    if (std::ranges::find(names, entry.name) != names.end()) {
      last[entry.name] = std::move(entry);
    } else if (const auto job = elsewhere.find(entry.name); job != elsewhere.end()) {
      of_jobs[job->second].insert(entry.name);
    } else if (!is_for_others(entry.name)) {
      ignored.insert(entry.name + did_you_mean(entry.name, names, " (did you mean {}?)"));
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
