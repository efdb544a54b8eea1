// One trial: a run is disturbed at a random moment, judged, and resumed; its model must be that of the undisturbed
// run, to the byte.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "soak/fault.h"

namespace tessera::testing {

// The run that nobody disturbed.
struct Reference {
  double seconds = 0;
  std::size_t model = 0;  // a hash of its file
};

struct TrialResult {
  std::string run, fault;
  double moment = 0;  // of the fault, in seconds after the start
  int status = 0;
  double gone_after = 0;  // from the fault until no process was left; for a run that goes on: 0
  bool was_hit = false;   // the fault was in time
  bool has_met = false;   // the ranks had met by then
  bool has_finished = false;
  bool has_resumed = false;  // from a checkpoint; else it began again
  std::vector<std::string> problems{};
};

class Trials {
 public:
  // Files go to `folder`; those of a trial with problems stay there.
  Trials(std::filesystem::path folder, unsigned seed);

  // The same number draws the same run and fault, at the same part of the time that the run takes.
  TrialResult run(int number);

 private:
  Reference& reference_of(const DrawnRun& drawn);

  std::filesystem::path folder_;
  unsigned seed_;
  std::vector<DrawnRun> runs_;
  std::map<std::string, Reference> references_;  // by the run's name
};

}  // namespace tessera::testing
