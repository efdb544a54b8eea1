// What goes wrong in a trial: somebody kills, stops, pauses or attacks a process of the run.
#pragma once

#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "launch/run.h"
#include "soak/drawn_run.h"

namespace tessera::testing {

enum class Outcome {
  kGoesOn,  // the run ends as if nothing had happened
  kEnds,    // the run fails, unless it was over before
  kStops,   // the run is asked to end: it saves first, if it can
};

// What a fault acts on, and what it leaves for the judge.
struct Scene {
  StartedRun& run;
  const DrawnRun& drawn;
  int port;
  std::mt19937& random;
  std::vector<int> victims{};      // ranks: nobody else may be blamed
  bool may_blame_anybody = false;  // whoever could tell is dead

  // The process of a rank; waits for it to come. -1: the run has ended.
  pid_t process_of(int rank) const;
  bool has_met() const;  // the ranks have found each other
};

struct Fault {
  std::string name;
  Outcome outcome;
  std::vector<Starter> starters;  // where it can happen
  int least_ranks;
  std::function<bool(Scene&)> strike;           // false: it came too late
  std::function<std::string(Scene&)> expected;  // which words name it; empty: none
  std::chrono::seconds limit;                   // until all processes are gone
};

const std::vector<Fault>& all_faults();

}  // namespace tessera::testing
