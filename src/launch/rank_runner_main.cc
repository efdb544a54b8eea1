// tessera-minder: what `tessera __minder` does, in a program without libtorch, which would cost each rank a third of a
// second and 60 MB.
#include <cstdio>
#include <exception>

#include "core/error.h"
#include "core/output.h"
#include "launch/rank_runner.h"

int main(int argc, char** argv) {
  tessera::open_missing_standard_streams();
  try {
    return tessera::run_rank_runner({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tessera-minder: %s\n", error.what());
    return static_cast<int>(tessera::ExitStatus::kFailure);
  }
}
