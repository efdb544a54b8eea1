// What the program says about itself: `tessera man`, and the tables of docs/settings.md.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "cli/commands.h"
#include "core/error.h"
#include "core/output.h"
#include "core/text.h"
#include "core/version.h"

namespace tessera {
namespace {

const char* const kSynopsis =
#include "cli/man/synopsis.roff"
    ;

const char* const kEnvironment =
#include "cli/man/environment.roff"
    ;

const char* const kFiles =
#include "cli/man/files.roff"
    ;

// Text that roff takes as it is: backslashes and hyphens stay what they are, and no line becomes a request.
std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c == '\n' ? ' ' : c);
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

std::string man_entry(const std::string& term, const std::string& text) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(term), roff(text));
}

// Null: no status of ours. g++ refuses this switch when a status without a meaning is declared.
const char* meaning_of(ExitStatus status) {
  switch (status) {
    case ExitStatus::kOk:
      return "success";
    case ExitStatus::kFailure:
      return "a failure without a status of its own";
    case ExitStatus::kUsage:
      return "an option, a setting or a file that you can fix; the message says how";
    case ExitStatus::kRendezvous:
      return "the ranks did not find each other, or do not match";
    case ExitStatus::kCollective:
      return "a collective hung, or the ranks disagreed about it";
    case ExitStatus::kNoBandwidth:
      return "comm-test: no bandwidth could be measured";
    case ExitStatus::kWrongData:
      return "comm-test: a collective delivered wrong data";
    case ExitStatus::kLowBandwidth:
      return "comm-test: the bandwidth is below --min-busbw";
    case ExitStatus::kOutOfMemory:
      return "train: out of memory, predicted by the plan or hit at run time";
    case ExitStatus::kRegression:
      return "runs compare: slower, or more memory, than its limits allow";
  }
  return nullptr;
}

std::string exit_statuses() {
  std::string text = ".SH EXIT STATUS\n";
  for (int status = 0; status < 128; ++status) {
    if (const char* meaning = meaning_of(static_cast<ExitStatus>(status))) {
      text += man_entry(fmt::format("{}", status), meaning);
    }
  }
  return text + man_entry("128 + N", "a run that signal N ended, after it saved what it could");
}

std::string man_commands(const std::vector<DescribedCommand>& commands) {
  std::string text = ".SH COMMANDS\n";
  for (const DescribedCommand& command : commands) text += man_entry(command.usage, command.summary);
  return text;
}

// Variables that set options, each with the options and their commands.
std::string declared_variables(const std::vector<DescribedCommand>& commands) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> users;  // by variable, then by option
  for (const DescribedCommand& command : commands) {
    for (const DescribedOption& option : command.options) {
      for (const std::string& variable : option.variables)
        users[variable][option.names.front()].push_back(command.name);
    }
  }
  std::string text;
  for (const auto& [variable, options] : users) {
    std::vector<std::string> parts;
    for (const auto& [option, names] : options) parts.push_back(fmt::format("{} of {}", option, join(names, ", ")));
    text += man_entry(variable, join(parts, "; "));
  }
  return text;
}

std::string man_page(const std::vector<DescribedCommand>& commands) {
  return fmt::format(".TH TESSERA 1 \"\" \"Tessera {}\" \"User Commands\"\n", kVersion) + kSynopsis +
         man_commands(commands) + exit_statuses() + kEnvironment + declared_variables(commands) + kFiles;
}

struct NoSettings {};

void declare(Schema&, NoSettings&) {}

int run_man(Schema&, NoSettings&) {
  print_out(man_page(described_commands()));
  return 0;
}

std::string settings_of(const Command& command, const std::set<std::string>& left_out = {}) {
  return fmt::format("\n## tessera {}\n\n{}", command.name, command.schema().docs_table(left_out));
}

// What is the same in all jobs stands once; below each job what it adds, and what has another default there.
std::string settings_of_jobs(const std::vector<Command>& jobs) {
  const std::set<std::string> of_first = jobs.front().schema().docs_rows();
  std::set<std::string> shared = of_first, own;
  for (const Command& job : jobs) {
    const std::set<std::string> rows = job.schema().docs_rows();
    std::erase_if(shared, [&](const std::string& row) { return !rows.contains(row); });
  }
  std::ranges::set_difference(of_first, shared, std::inserter(own, own.end()));
  std::string text =
      fmt::format("\n## tessera train, every job\n\n{}", jobs.front().schema().docs_table(/*left_out=*/own));
  for (const Command& job : jobs) text += settings_of(job, shared);
  return text;
}

// The jobs' settings are the longest and come last.
int run_settings_page(const std::vector<std::string>&) {
  std::string text, of_jobs;
  for (const Command& command : commands()) {
    if (command.summary.empty()) continue;
    if (command.jobs.empty()) {
      text += settings_of(command);
    } else {
      of_jobs += settings_of_jobs(command.jobs);
    }
  }
  print_out(text + of_jobs);
  return 0;
}

}  // namespace

// Prints roff for section 1, the same for the same program.
Command man_command() {
  return with_settings<NoSettings>({.name = "man",
                                    .summary = "print the man page",
                                    .about = "this program's man page, for: tessera man | man -l -",
                                    .has_rank = false},
                                   declare, run_man);
}

// Not for users: tools/settings_docs.sh writes docs/settings.md with it.
Command settings_page_command() {
  return {.name = "__settings", .run = run_settings_page};
}

}  // namespace tessera
