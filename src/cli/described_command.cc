#include "cli/described_command.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string_view>

#include "core/error.h"
#include "core/file_descriptor.h"
#include "core/text.h"
#include "jobs/jobs.h"

namespace tessera {
namespace {

// Standard output goes to a file in memory while this exists.
class RedirectedOutput {
 public:
  RedirectedOutput() : terminal_(::dup(STDOUT_FILENO)), file_(::memfd_create("tessera", MFD_CLOEXEC)) {
    std::fflush(stdout);
    if (!terminal_ || !file_ || ::dup2(file_.get(), STDOUT_FILENO) < 0) {
      throw Error(fmt::format("cannot redirect standard output: {}", std::strerror(errno)));
    }
  }
  ~RedirectedOutput() {
    std::fflush(stdout);
    ::dup2(terminal_.get(), STDOUT_FILENO);
  }
  RedirectedOutput(const RedirectedOutput&) = delete;
  RedirectedOutput& operator=(const RedirectedOutput&) = delete;

  std::string text() const {
    std::fflush(stdout);
    std::string all(static_cast<std::size_t>(::lseek(file_.get(), 0, SEEK_END)), '\0');
    const ssize_t size = ::pread(file_.get(), all.data(), all.size(), 0);
    all.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return all;
  }

 private:
  Fd terminal_, file_;
};

std::string printed_by(const Command& command, const std::vector<std::string>& args) {
  const RedirectedOutput output;
  command.run(args);
  return output.text();
}

// "| `--iters`, `-n` | integer | ... |": what is between the bars. A bar that belongs to a text is written \|.
std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  std::string cell;
  for (std::size_t i = 1; i < row.size(); ++i) {
    if (row[i] == '|') {
      cells.emplace_back(trim(cell));
      cell.clear();
    } else {
      if (row[i] == '\\' && i + 1 < row.size() && row[i + 1] == '|') ++i;
      cell += row[i];
    }
  }
  return cells;
}

// "`auto`, `on`": auto and on.
std::vector<std::string> words_in_backquotes(const std::string& cell) {
  const std::vector<std::string> parts = split(cell, '`');
  std::vector<std::string> words;
  for (std::size_t i = 1; i < parts.size(); i += 2) words.push_back(parts[i]);
  return words;
}

// A row of the table: setting, type, default, allowed, environment, meaning.
DescribedOption option_of(const std::string& row) {
  const std::vector<std::string> cells = cells_of(row);
  if (cells.size() != 6) throw Error(fmt::format("expected a row of six cells, found {}", row));
  DescribedOption option{.names = words_in_backquotes(cells[0]),
                         .values = words_in_backquotes(cells[3]),
                         .variables = words_in_backquotes(cells[4]),
                         .help = cells[5]};
  const std::string& type = cells[1];
  if (type == "boolean") {
    // The opposite of what is so anyway is what somebody would write.
    if (cells[2] == "`true`") option.names.push_back("--no_" + option.names.front().substr(2));
  } else {
    const bool may_be_file = type == "text" && option.values.empty();
    option.takes = may_be_file ? DescribedOption::Takes::kText : DescribedOption::Takes::kValue;
  }
  return option;
}

// The lines below "Always:" in --help: "  -h, --help   this text".
std::vector<DescribedOption> common_options(const std::string& help) {
  constexpr std::string_view kTitle = "\nAlways:\n";
  std::vector<DescribedOption> options;
  std::istringstream lines(help.substr(std::min(help.size(), help.find(kTitle))));
  std::string line;
  for (int skipped = 0; skipped < 2; ++skipped) std::getline(lines, line);
  while (std::getline(lines, line) && !line.empty()) {
    DescribedOption option;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (option.help.empty() && word.starts_with('-')) {
        option.names.push_back(word.substr(0, word.find(',')));
      } else {
        option.help += (option.help.empty() ? "" : " ") + word;
      }
    }
    options.push_back(std::move(option));
  }
  return options;
}

// What --help says after "usage: ", without the explanation after a colon.
std::string usage_of(const std::string& help) {
  constexpr std::string_view kStart = "usage: ";
  const std::size_t start = help.find(kStart);
  if (start == std::string::npos) return "";
  const std::string line = help.substr(start + kStart.size(), help.find('\n', start) - start - kStart.size());
  return line.substr(0, line.find(": "));
}

// "tessera runs [settings] ls|show|compare DIR...": words to be written as they are have no capitals.
std::vector<std::string> verbs_of(const std::string& usage) {
  constexpr std::string_view kBefore = "[settings] ";
  const std::size_t start = usage.find(kBefore);
  if (start == std::string::npos) return {};
  const std::string rest = usage.substr(start + kBefore.size());
  const std::string first = rest.substr(0, rest.find(' '));
  const bool is_literal =
      std::all_of(first.begin(), first.end(), [](char c) { return c == '|' || (c >= 'a' && c <= 'z'); });
  return is_literal ? split(first, '|') : std::vector<std::string>();
}

// `words`: what goes before the options, as a job's name does.
DescribedCommand describe(const Command& command, const std::vector<std::string>& words, const std::string& name,
                          const std::string& summary) {
  const auto printed = [&](const std::string& option) {
    std::vector<std::string> args = words;
    args.push_back(option);
    return printed_by(command, args);
  };
  const std::string help = printed("--help");
  DescribedCommand described{.name = name, .summary = summary, .usage = usage_of(help)};
  described.verbs = verbs_of(described.usage);
  for (const std::string& line : split(printed("--help=markdown"), '\n')) {
    if (line.starts_with("| `-")) described.options.push_back(option_of(line));
  }
  for (DescribedOption& option : common_options(help)) described.options.push_back(std::move(option));
  return described;
}

}  // namespace

std::vector<DescribedCommand> describe(const std::vector<Command>& commands) {
  std::vector<DescribedCommand> described;
  for (const Command& command : commands) {
    if (command.summary.empty()) continue;
    if (command.name != "train") {
      described.push_back(describe(command, {}, command.name, command.summary));
      continue;
    }
    described.push_back({.name = command.name,
                         .summary = command.summary,
                         .usage = usage_of(printed_by(command, {"--help"})),
                         .options = {{.names = {"--help"}, .help = "the jobs"}}});
    for (const JobTraits* job : job_traits()) {
      described.push_back(describe(command, {job->name}, "train " + job->name, job->summary));
    }
  }
  return described;
}

}  // namespace tessera
