#include "cli/demo.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/experiment_command.h"
#include "comm/mpi_support.h"
#include "config/schema.h"
#include "core/error.h"
#include "core/output.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// The script and its data lie where they lie relative to the program: an installation may be moved.
fs::path demo_script(const fs::path& program) {
  const fs::path script = program.parent_path().parent_path() / "share/tessera/demo/demo.sh";
  std::error_code ignored;
  if (!fs::exists(script, ignored)) {
    throw Error(fmt::format("{} is missing: the demo is not installed with {}", script.string(), program.string()));
  }
  return script;
}

}  // namespace

int run_demo(const std::vector<std::string>& args) {
  std::vector<std::string> words;
  int epochs = 0;
  Schema schema("tessera demo",
                "train a small BLOOM on this machine in about two minutes; FOLDER is replaced if a demo made it");
  schema.positionals("[FOLDER]: for what it leaves, else tessera-demo", &words);
  schema.integer("epochs", &epochs).at_least(1).help("how often it sees each question; none: until it knows them");
  if (!schema.read_command_line(args)) return 0;
  if (schema.wants_print_config()) {
    print_out(schema.config_text());
    return 0;
  }
  if (words.size() > 1) throw UsageError("expected: tessera demo [FOLDER]");
  const std::string script = demo_script(fs::read_symlink("/proc/self/exe")).string();
  const std::string folder = words.empty() ? "tessera-demo" : words.front();
  const std::string num_epochs = epochs > 0 ? fmt::format("{}", epochs) : "";
  // Ranks that are processes on CPUs meet by MPI; one alone needs none.
  const OpenMpi mpi = find_open_mpi(Environment::of_process());
  std::string why_one_rank = mpi_support() == nullptr ? no_mpi_reason() : "";
  if (why_one_rank.empty() && mpi.mpirun.empty()) why_one_rank = "no mpirun in PATH: " + advice_for_open_mpi(mpi);
  ::setenv("TESSERA", this_program().path.c_str(), 1);
  ::execlp("bash", "bash", script.c_str(), folder.c_str(), num_epochs.c_str(), why_one_rank.c_str(), nullptr);
  throw Error(fmt::format("cannot start bash, which runs the demo: {}", std::strerror(errno)));
}

}  // namespace tessera
