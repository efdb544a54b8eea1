// All processes of a job on this host, and what they use together: read from /proc.
//
// A process belongs to the job if it descends from a given one, or carries the job's mark in its environment (srun's
// ranks descend from Slurm's daemon, not from the job's script), or descends from one that does.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/environment.h"

namespace tessera {

struct JobUsage {
  int num_processes = 0;
  std::int64_t resident_bytes = 0, virtual_bytes = 0;  // sums: pages that processes share count for each
  double cpu_seconds = 0;                              // since the first reading; never less than before
};

// "SLURM_JOB_ID=4711", else Open MPI's or PMIx's name of the job, else that of `tessera launch`: what the environment
// of every process of this job holds. Empty: nothing marks them.
std::string job_mark(const Environment& environment);

class JobProcesses {
 public:
  struct Options {
    std::vector<pid_t> roots;  // counted, with all their descendants
    pid_t left_out = 0;        // never counted, though its descendants may be
    std::string mark;
  };
  // `proc` replaces /proc in tests.
  explicit JobProcesses(Options options, std::filesystem::path proc = "/proc")
      : options_(std::move(options)), proc_(std::move(proc)) {}

  // A process that ends meanwhile is left out. CPU seconds that a process uses after its last reading are lost.
  JobUsage read();

 private:
  // A number is used again for a later process; with its start it is unique until the next boot.
  using Key = std::pair<pid_t, unsigned long long>;
  struct Process {
    Key key;
    pid_t parent = 0;
    unsigned long long cpu_ticks = 0, virtual_bytes = 0;
    long long resident_pages = 0;
  };
  struct Known {
    unsigned long long cpu_ticks = 0;
    bool has_mark = false;
    int num_looks = 0;  // at its environment
  };

  std::vector<Process> read_all() const;
  bool read_process(const std::string& name, Process& process) const;
  bool has_mark(Known& known, pid_t pid) const;
  std::vector<const Process*> members(const std::vector<Process>& all);

  Options options_;
  std::filesystem::path proc_;
  std::map<Key, Known> known_;
  bool is_first_ = true;
  unsigned long long cpu_ticks_ = 0;
};

// How long the Slurm job that this process is part of may still run.

// In seconds; none outside a job, or where it has no limit. Newer Slurms say when it ends in SLURM_JOB_END_TIME; else
// squeue is asked. Throws Error if its answer is not understood.
std::optional<double> job_time_left(const Environment& environment);

// '1-02:03:04', '2:03', 'UNLIMITED', as squeue's %L prints them. Throws Error for anything else.
std::optional<double> slurm_time_left(const std::string& text);

}  // namespace tessera
