#include "state/output_lock.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <random>
#include <system_error>

#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "core/json.h"
#include "core/log.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockFile = ".tessera-lock.json";
constexpr int kPeriodsUntilDead = 3;
constexpr std::chrono::milliseconds kPatience{3000};

// Where a process number means something: containers on one host have numbers of their own.
std::string process_space() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/ns/pid", ignored).string();
}

struct Holder {
  std::string id, host, space, job;
  std::int64_t process = 0, beat = 0;

  bool is_here() const { return host == host_name() && space == process_space(); }
  bool is_gone() const { return is_here() && ::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH; }
};

// None: there is no lock, or it is half written.
std::optional<Holder> read_holder(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return std::nullopt;
  try {
    const Json json = read_json_file(file);
    return Holder{json.at("id"),  json.at("host"),    json.at("process_space"),
                  json.at("job"), json.at("process"), json.at("beat")};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string new_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace

fs::path OutputLock::file_in(const fs::path& folder) {
  return folder / kLockFile;
}

OutputLock::OutputLock(const fs::path& folder, const Environment& environment, std::chrono::milliseconds period)
    : file_(file_in(folder)), id_(new_id()), job_(environment.find("SLURM_JOB_ID").value_or("")), period_(period) {
  const std::optional<Holder> before = read_holder(file_);
  const bool may_live = before && !before->is_gone() && !(job_ == before->job && !job_.empty());
  if (may_live) {
    // A process of this host may be about to end: its launcher was killed. Of another host only the beats are seen.
    const bool is_here = before->is_here();
    const auto patience =
        is_here ? std::min<std::chrono::milliseconds>(kPatience, period_) : kPeriodsUntilDead * period_;
    const auto begin = std::chrono::steady_clock::now();
    bool lives = is_here;
    while (std::chrono::steady_clock::now() - begin < patience) {
      std::this_thread::sleep_for(patience / 60);
      const std::optional<Holder> now = read_holder(file_);
      lives = now && (is_here ? !now->is_gone() : now->id != before->id || now->beat != before->beat);
      if (lives != is_here) break;  // it has ended; or it lives on its host
    }
    if (lives) {
      throw UsageError(fmt::format(
          "{} is in use by another run, process {} on {}{}: give this one another --output_dir, or wait for "
          "it (its lock is {})",
          folder.string(), before->process, before->host,
          before->job.empty() ? "" : fmt::format(", Slurm job {}", before->job), file_.string()));
    }
  }
  if (before) log_info("the run that used {} before has ended without saying so", folder.string());
  write(0);
  check();  // of two that start at the same moment, the one that wrote last goes on
  heart_ = std::jthread([this](const std::stop_token& stop) { keep_beating(stop); });
}

OutputLock::~OutputLock() {
  heart_ = {};
  const std::optional<Holder> holder = read_holder(file_);
  std::error_code ignored;
  if (holder && holder->id == id_) fs::remove(file_, ignored);
}

void OutputLock::check() const {
  const std::optional<Holder> holder = read_holder(file_);
  if (!holder || holder->id == id_) return;  // a lock that someone removed is no other run
  throw Error(fmt::format("{} was taken over by process {} on {}: this run was silent for too long",
                          file_.parent_path().string(), holder->process, holder->host));
}

void OutputLock::write(std::int64_t beat) const {
  const Json json = {{"id", id_},   {"host", host_name()}, {"process", ::getpid()}, {"process_space", process_space()},
                     {"job", job_}, {"beat", beat}};
  write_file_atomically(file_, json.dump() + "\n");
}

void OutputLock::keep_beating(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock(mutex);
  for (std::int64_t beat = 1; !woken.wait_for(lock, stop, period_, [] { return false; }); ++beat) {
    if (stop.stop_requested()) return;
    try {
      const std::optional<Holder> holder = read_holder(file_);
      if (holder && holder->id != id_) return;  // check() will say so
      write(beat);
    } catch (const Error& error) {  // a full disk: the next save says so
      log_debug("{}", error.what());
    }
  }
}

}  // namespace tessera
