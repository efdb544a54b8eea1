// The program: what the first word asks for. commands.cc has the table of commands.
#include <c10/util/Logging.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "comm/failure.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/log.h"
#include "core/output.h"
#include "core/text.h"

namespace tessera {
namespace {

using Arguments = std::vector<std::string>;

// libtorch's warnings as lines of our log, each once. Some hold the text of an error with all its lines: the first says
// what matters.
class WarningsInLog : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    const std::string line = warning.msg().substr(0, warning.msg().find('\n'));
    if (shown_.insert(line).second) log_warn("libtorch: {}", line);
  }

 private:
  std::set<std::string> shown_;
};

// On this thread. libtorch's errors carry no backtrace, unless the log shows debug lines.
void tame_torch_messages() {
  static WarningsInLog handler;
  c10::WarningUtils::set_warning_handler(&handler);
  if (!log_enabled(LogLevel::kDebug)) c10::SetStackTraceFetcher([] { return std::string(); });
}

std::string usage() {
  std::string text = "usage: tessera COMMAND [options]\n\n";
  for (const Command& command : commands()) {
    if (!command.summary.empty()) text += fmt::format("  {:<14} {}\n", command.name, command.summary);
  }
  return text + "\n`tessera help COMMAND` shows a command's options, `tessera --version` what it is built of.\n";
}

// Hyphens and underscores are the same, as in settings.
std::string command_name(std::string word) {
  if (!word.starts_with("__")) std::ranges::replace(word, '_', '-');
  return word;
}

// Null: there is none of that name.
const Command* look_up(const std::string& name) {
  for (const Command& command : commands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

[[noreturn]] void refuse_unknown(const std::string& name) {
  const std::vector<std::string> names = command_names();
  throw UsageError(
      fmt::format("unknown command '{}'{}; commands: {}", name, did_you_mean(name, names), join(names, ", ")));
}

int run(const Arguments& arguments) {
  try {
    const std::string first = arguments.empty() ? "--help" : arguments.front();
    const Command* command = look_up(command_name(first));
    // `tessera env` reports a wrong TESSERA_LOG or OMP_NUM_THREADS; everything else refuses it.
    if (first != "env") {
      const bool has_rank = command == nullptr || command->has_rank;
      configure_log(Environment::of_process().find("TESSERA_LOG").value_or("info"), has_rank ? 0 : -1);
    }
    if (first == "help" && arguments.size() > 1) {  // "help train": "train --help"
      Arguments asked(arguments.begin() + 1, arguments.end());
      asked.emplace_back("--help");
      return run(asked);
    }
    if (first == "--help" || first == "-h" || first == "help") {
      print_out(usage());
      return arguments.empty() ? static_cast<int>(ExitStatus::kUsage) : 0;
    }
    if (first == "--version" || first == "version") {
      print_out(version_text());
      return 0;
    }
    if (command == nullptr) refuse_unknown(command_name(first));
    if (first != "env") check_thread_count(Environment::of_process());
    tame_torch_messages();
    return command->run({arguments.begin() + 1, arguments.end()});
  } catch (const std::exception& error) {
    return report_failure(error);
  }
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  tessera::open_missing_standard_streams();
  const int status = tessera::run({argv + 1, argv + argc});
  std::fflush(nullptr);
  std::quick_exit(status);  // libtorch's destructors take longer than many a command, and nothing needs them
}
