// A run that is asked to stop: SIGTERM, SIGUSR1, SIGINT or SIGHUP on any rank, agreed on by all at the end of a step.
//
//   const StopSignals signals;                         // of this process, while it lives
//   StopVote vote(world);
//   ... after each step: if (const int signal = vote.after_step(StopSignals::received())) stop ...
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <csignal>
#include <string>

#include "parallel/host_link.h"
#include "tessera/world.h"

namespace tessera {

// Takes the signals as a wish. One that was ignored when it is made stays ignored; a second SIGINT ends the process at
// once. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();  // as it was
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static int received();  // the first since it was made; 0: none

 private:
  static constexpr std::array kSignals = {SIGTERM, SIGUSR1, SIGINT, SIGHUP};
  std::array<struct sigaction, kSignals.size()> former_{};
};

// Whether any rank has been asked to stop, known one step later: so that nobody waits for it, on a GPU least of all. A
// collective of one number a step, which runs beside the next step; the last one is left to end by itself, since ranks
// may be gone by then.
class StopVote {
 public:
  explicit StopVote(World& world);

  // Collective, once a step. `own`: this rank's signal, or 0. Gives the highest that any rank had at the call before
  // this one, the same on every rank; alone, this rank's own.
  int after_step(int own);

 private:
  World& world_;
  HostLink link_;
  at::Tensor asked_, answer_;  // one number each, on the device and on the host
  Transfer arriving_;
  WorkHandle under_way_;
};

// The highest that any rank has received, waited for; 0: none. Collective.
int signal_of_any_rank(World& world);

std::string stop_signal_name(int signal);  // SIGTERM

}  // namespace tessera
