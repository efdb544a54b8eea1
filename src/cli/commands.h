// The commands of the program: one table (commands.cc), which `tessera help`, completion, the man page and
// docs/settings.md read.
#pragma once

#include <string>
#include <vector>

#include "config/command.h"

namespace tessera {

const std::vector<Command>& commands();  // in the order of `tessera help`

std::vector<std::string> command_names();  // of those for users

// What a command declares, as data.
struct DescribedCommand {
  std::string name;  // "runs", "train bloom-qa"
  std::string summary;
  std::string usage;                 // "tessera runs [settings] ls|show|compare DIR..."
  std::vector<std::string> verbs{};  // words that may come first: ls, show, compare
  std::vector<DescribedOption> options{};
};

// Those for users, in the order of commands(). `train` is followed by one for each of its jobs.
std::vector<DescribedCommand> described_commands();

// What the table is made of, with the file that has them.
Command completion_command();  // completion.cc
Command man_command();         // man.cc
Command settings_page_command();
Command launch_command();  // run_commands.cc
Command minder_command();
Command train_command();
Command demo_command();
Command evaluate_command();  // evaluate.cc
Command generate_command();  // generate.cc
Command inspect_command();   // model_commands.cc
Command convert_command();
Command data_command();            // data_commands.cc
Command tokenize_command();        // tokenize.cc
Command checkpoint_command();      // checkpoint.cc
Command plan_command();            // plan.cc
Command experiment_command();      // experiment_command.cc
Command import_command();          // import.cc
Command runs_command();            // runs.cc
Command table_command();           // table.cc
Command report_command();          // report.cc
Command analyze_memory_command();  // memory_commands.cc
Command monitor_command();
Command comm_test_command();  // comm_test.cc
Command env_command();        // env.cc

// To the file; none: to standard output.
void write_output(const std::string& text, const std::string& file);
// `tessera report`: writes a page about the runs in these folders and prints what is on it.
struct UnrecordedRun;
struct ReportRequest {
  std::vector<std::string> folders;
  std::string output, title;
};
int write_report(const ReportRequest& request, const std::vector<UnrecordedRun>& others);  // to be named besides
// `tessera --version`. The first line names the program and its commit, and is all that scripts compare; then one line
// each for torch, CUDA and MPI. Loads nothing that is not loaded yet except the MPI library.
std::string version_text();
// The commit that this program was built from: 40 digits, followed by "-dirty" if files differ from it; empty if the
// sources have no history. CMakeLists.txt generates its source.
const char* build_commit();

}  // namespace tessera
