// What a trial runs: a small training job with strategy, ranks, starter, precision, offload and saving drawn at random.
#pragma once

#include <filesystem>
#include <random>
#include <string>

#include "launch/run.h"

namespace tessera::testing {

enum class Starter {
  kAlone,     // one process
  kLaunch,    // `tessera launch`
  kMpirun,    // mpirun, which ends all ranks when one dies
  kLooseMpi,  // mpirun that does not care when a rank dies, as plain srun
};

struct DrawnRun {
  std::string job;
  std::string strategy;
  int num_ranks = 1;
  Starter starter = Starter::kLaunch;
  std::string more;  // offload, precision, ...

  std::string name() const;
  // `port`: where the ranks meet; only a launcher is told.
  Words command(const std::filesystem::path& output, int port) const;
};

// A collective of these runs, and their start, may take so long.
inline constexpr std::chrono::seconds kCommLimit{8}, kStartLimit{20};

DrawnRun draw_run(std::mt19937& random);

template <typename Values>
const auto& draw(const Values& values, std::mt19937& random) {
  return values[random() % values.size()];
}

}  // namespace tessera::testing
