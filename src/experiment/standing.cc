#include "experiment/standing.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/failure.h"
#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "core/log.h"
#include "core/text.h"
#include "record/metrics.h"
#include "record/record_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEndedFile = "ended.json";

// Slurm's last answer; a file for each user, since in a shared folder only its owner may replace it.
fs::path answer_file(const fs::path& runs) {
  return runs / fmt::format(".queue.{}.json", current_user());
}

// What Slurm said of a job that is over.
struct EndedJob {
  const char* state;
  const char* words;
  const char* advice;
};

constexpr EndedJob kEndedJobs[] = {
    {"TIMEOUT", "time limit", "give more --time, or save checkpoints so that the next turn goes on"},
    {"NODE_FAIL", "node failure", "rerun it"},
    {"CANCELLED", "cancelled", ""},
    {"OUT_OF_MEMORY", "out of host memory", "give more --memory"},
    {"PREEMPTED", "preempted", "rerun it"},
    {"BOOT_FAIL", "node failure", "rerun it"},
    {"DEADLINE", "deadline", ""},
};

// What an exit status of a run means.
struct KnownStatus {
  int status;
  const char* words;
  const char* advice;
};

constexpr KnownStatus kKnownStatuses[] = {
    {0, "finished", ""},
    {static_cast<int>(ExitStatus::kUsage), "refused its settings or files (2)",
     "the log's last line says what to change"},
    {static_cast<int>(ExitStatus::kRendezvous), "the ranks did not find each other (42)", ""},
    {static_cast<int>(ExitStatus::kCollective), "a collective hung (43)", ""},
    {static_cast<int>(ExitStatus::kNoBandwidth), "bandwidth gate: no figure (44)",
     "see the gate's log beside the run's"},
    {static_cast<int>(ExitStatus::kWrongData), "bandwidth gate: wrong data (45)", ""},
    {static_cast<int>(ExitStatus::kLowBandwidth), "bandwidth gate: below the threshold (46)",
     "another network interface or other nodes; --gate off trains all the same"},
    {static_cast<int>(ExitStatus::kOutOfMemory), "out of memory (47)", "the log shows what would fit"},
    {128 + 9, "ended by signal 9", "often too little host memory: give more --memory"},
    {138, "stopped before the time limit (138)",
     "nothing was saved to resume from: give more --time, or --save_strategy on_stop"},
};

// A run that ended with this status.
RunStanding ended_with(RunStanding standing, int status) {
  standing.stage = status == 0 ? RunStage::kFinished : RunStage::kFailed;
  standing.words =
      status > 128 ? fmt::format("ended by signal {}", status - 128) : fmt::format("failed with status {}", status);
  for (const KnownStatus& known : kKnownStatuses) {
    if (known.status != status) continue;
    standing.words = known.words;
    standing.advice = known.advice;
  }
  return standing;
}

std::optional<QueuedJob> read_ended(const StoredRun& run) {
  std::error_code none;
  if (!fs::exists(run.folder / kEndedFile, none)) return std::nullopt;
  try {
    return job_of(read_json_file(run.folder / kEndedFile));
  } catch (const Error&) {  // half written: Slurm is asked again
    return std::nullopt;
  }
}

void remember(const StoredRun& run, const QueuedJob& job) {
  try {
    write_file_atomically(run.folder / kEndedFile, json_text(job_json(job)) + "\n");
  } catch (const Error& error) {  // another user's run: it stays to be asked for
    log_debug("{}", error.what());
  }
}

std::optional<RunRecord> record_of(const StoredRun& run) {
  std::error_code none;
  const fs::path file = output_of(run) / "run.json";
  if (!fs::exists(file, none)) return std::nullopt;
  try {
    return read_run_record(file, RunDetail::kBrief);
  } catch (const std::exception&) {  // broken: `tessera runs show` says more
    return std::nullopt;
  }
}

// ", step 40 of 93": of a run that goes on.
std::string progress_of(const std::optional<RunRecord>& record) {
  return record ? fmt::format(", step {} of {}", steps_done(*record), record->total_steps) : "";
}

// A run of `experiment run`, which has not come to its end: its record tells whether it still can.
RunStanding local_standing(RunStanding standing) {
  const auto record = record_of(standing.run);
  const bool runs = !record || status_of(*record, wall_seconds()) == "running";
  standing.stage = runs ? RunStage::kRunning : RunStage::kFailed;
  standing.words = record ? status_with_reason(*record, wall_seconds()) + progress_of(record)
                          : "has not begun its steps, or was killed before";
  return standing;
}

// What the first rank that failed said; empty: nothing, or all is well.
std::string reason_of_first(const StoredRun& run) {
  if (run.exit_status == 0) return "";
  try {
    const auto failure = read_failure(run.folder / "failure.json");
    return failure ? printable(failure->message, 160) : "";
  } catch (const std::exception&) {  // cut off while it was written
    return "";
  }
}

RunStanding ended_by_slurm(RunStanding standing, const QueuedJob& job) {
  standing.stage = RunStage::kFailed;
  for (const EndedJob& known : kEndedJobs) {
    if (job.state != known.state) continue;
    standing.words =
        job.reason.empty() || job.state == "CANCELLED" ? known.words : fmt::format("{} ({})", known.words, job.reason);
    standing.advice = known.advice;
    return standing;
  }
  // Without the run's own status, since the file system lags behind.
  if (job.exit_status && (*job.exit_status != 0 || job.state == "COMPLETED")) {
    return ended_with(standing, *job.exit_status);
  }
  standing.words = fmt::format("Slurm says {}, but the run left no exit status; its log says more", job.state);
  return standing;
}

}  // namespace

RunStanding standing_of(const StoredRun& run, const Jobs& jobs) {
  RunStanding standing{run, RunStage::kFailed, "", ""};
  if (run.exit_status) {
    standing = ended_with(standing, *run.exit_status);
    if (const std::string reason = reason_of_first(run); !reason.empty()) standing.words += ": " + reason;
    return standing;
  }
  if (!run.job_id) return local_standing(standing);
  if (const auto ended = read_ended(run)) return ended_by_slurm(standing, *ended);
  const auto job = jobs.find(*run.job_id);
  if (job == jobs.end()) {
    standing.words = "Slurm does not know the job any more, and the run left no exit status";
    standing.advice = "rerun it";
    return standing;
  }
  if (is_over(job->second.state)) return ended_by_slurm(standing, job->second);
  const bool runs = job->second.state != "PENDING" && job->second.state != "REQUEUE_HOLD";
  standing.stage = runs ? RunStage::kRunning : RunStage::kWaiting;
  standing.words =
      fmt::format("{} ({}){}", lower_case(job->second.state), job->second.reason, progress_of(record_of(run)));
  return standing;
}

std::vector<RunStanding> standings_of(const fs::path& runs, const std::vector<StoredRun>& stored) {
  std::vector<std::string> open;
  for (const StoredRun& run : stored) {
    if (run.job_id && !run.exit_status && !read_ended(run)) open.push_back(*run.job_id);
  }
  Jobs jobs;
  std::string silence;  // why Slurm could not be asked
  try {
    jobs = ask_about(open, answer_file(runs));
  } catch (const Error& error) {
    silence = error.what();
  }
  std::vector<RunStanding> states;
  for (const StoredRun& run : stored) {
    if (!silence.empty() && run.job_id && !run.exit_status && !read_ended(run)) {
      states.push_back({run, RunStage::kWaiting, "open; Slurm cannot be asked: " + silence, ""});
      continue;
    }
    states.push_back(standing_of(run, jobs));
    const auto job = run.job_id ? jobs.find(*run.job_id) : jobs.end();
    if (!run.exit_status && job != jobs.end() && is_over(job->second.state) && job->second.state != "COMPLETED") {
      remember(run, job->second);
    }
  }
  return states;
}

void forget_answer(const fs::path& runs) {
  std::error_code ignored;
  fs::remove(answer_file(runs), ignored);
}

std::vector<StoredRun> newest_of(const std::vector<StoredRun>& stored) {
  std::vector<StoredRun> newest;
  for (const StoredRun& run : stored) {  // sorted by name and number
    const auto older = std::find_if(newest.rbegin(), newest.rend(), [&](const StoredRun& other) {
      return other.experiment == run.experiment && other.user == run.user;
    });
    if (older != newest.rend()) {
      *older = run;
    } else {
      newest.push_back(run);
    }
  }
  return newest;
}

}  // namespace tessera
