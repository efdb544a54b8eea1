// Stops a run on SIGTERM, SIGUSR1, SIGINT or SIGHUP to any rank: all ranks agree on it at the end of a step.
//
//   const StopSignals signals;                         // catches them in this process while it lives
//   StopVote vote(world);
//   ... after each step: if (vote.after_step({StopSignals::received()}).signal != 0) stop ...
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <csignal>
#include <string>

#include "parallel/offload.h"
#include "tessera/world.h"

namespace tessera {

// Records the signals instead of ending the process. A signal that was already ignored stays ignored; a second SIGINT
// ends the process at once. One object at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();  // restores the former handlers
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static int received();  // the first since construction; 0: none

 private:
  static constexpr std::array kSignals = {SIGTERM, SIGUSR1, SIGINT, SIGHUP};
  std::array<struct sigaction, kSignals.size()> former_{};
};

// What any rank has to say after a step, known one step later, so no rank (and no GPU) waits for it. One collective of
// two numbers per step, which runs during the next step. The last one is not waited for, since ranks may be gone by
// then.
struct StepVote {
  int signal = 0;           // asks to stop
  bool is_writing = false;  // a checkpoint, in the background
};

class StopVote {
 public:
  explicit StopVote(World& world);

  // Collective, once per step. Returns the highest signal, and whether any rank was writing, at the previous call: the
  // same on every rank; with one rank, its own at once.
  StepVote after_step(const StepVote& own);

 private:
  World& world_;
  HostLink link_;
  at::Tensor asked_, answer_;  // two numbers each, on the device and on the host
  StepVote held_;              // what asked_ holds
  Transfer arriving_;
  WorkHandle under_way_;
};

// The highest signal that any rank has received; waits for it. 0: none. Collective.
int signal_of_any_rank(World& world);

std::string stop_signal_name(int signal);  // SIGTERM

}  // namespace tessera
