#include "support/program.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

namespace tessera {

std::string binary() {
  const char* path = std::getenv("TESSERA_BINARY");
  return path == nullptr ? TESSERA_BUILT_BINARY : path;
}

Ended run_shell(const std::string& command) {
  Ended ended;
  const auto start = std::chrono::steady_clock::now();
  std::FILE* pipe = popen(fmt::format("{{ {}\n}} 2>&1 </dev/null", command).c_str(), "r");
  if (pipe == nullptr) return ended;
  char block[4096];
  while (const std::size_t size = std::fread(block, 1, sizeof block, pipe)) ended.output.append(block, size);
  const int result = pclose(pipe);
  ended.status = WIFEXITED(result) ? WEXITSTATUS(result) : 128 + WTERMSIG(result);
  ended.seconds = std::chrono::steady_clock::now() - start;
  return ended;
}

Ended run_tessera(const std::string& arguments, int num_ranks, const std::string& mpirun_options) {
  if (num_ranks == 0) return run_shell(fmt::format("{} {}", binary(), arguments));
  return run_shell(
      fmt::format("{} --allow-run-as-root --oversubscribe --bind-to none -x OMP_NUM_THREADS=1 --mca "
                  "mpi_yield_when_idle 1 {} -np {} "
                  "{} {}",
                  TESSERA_MPIRUN, mpirun_options, num_ranks, binary(), arguments));
}

}  // namespace tessera
