#include "state/output_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <random>
#include <system_error>

#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "core/json.h"
#include "core/log.h"
#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockFile = ".tessera-lock.json";
constexpr int kPeriodsUntilDead = 3;
constexpr std::chrono::milliseconds kPatience{3000};

// Where process numbers mean something: this start of this host's kernel, and containers have numbers of their own.
std::string process_space() {
  std::error_code ignored;
  return fmt::format("{} {}", trim(read_if_possible("/proc/sys/kernel/random/boot_id")),
                     fs::read_symlink("/proc/self/ns/pid", ignored).string());
}

// A process by more than its number, which is used again: when it started, in the kernel's ticks. Nothing: it is gone,
// or a zombie.
std::string start_of(std::int64_t process) {
  const std::string stat = read_if_possible(fmt::format("/proc/{}/stat", process));
  const std::size_t name_end = stat.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return "";
  const std::vector<std::string> fields = split(stat.substr(std::min(name_end + 2, stat.size())), ' ');
  constexpr std::size_t kState = 0, kStart = 19;  // counted from the field behind the name
  return fields.size() <= kStart || fields[kState] == "Z" || fields[kState] == "X" ? "" : fields[kStart];
}

struct Holder {
  std::string id, host, space, start, job;
  std::int64_t process = 0, beat = 0;

  bool is_here() const { return space == process_space(); }
  bool is_gone() const { return is_here() && start_of(process) != start; }
};

// None: there is no lock, or it is half written.
std::optional<Holder> read_holder(const fs::path& file) {
  if (!is_there(file)) return std::nullopt;
  try {
    const Json json = read_json_file(file);
    return Holder{json.at("id"),  json.at("host"),    json.at("process_space"), json.at("process_start"),
                  json.at("job"), json.at("process"), json.at("beat")};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string new_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

// "1234" and "1234 restarted 2 times" are one job, which runs once at a time. Two steps of one start are not told apart
// by it.
std::string job_of(const Environment& environment) {
  const std::optional<std::string> job = environment.find("SLURM_JOB_ID");
  return job ? *job + "." + environment.find("SLURM_RESTART_COUNT").value_or("0") : "";
}
bool is_earlier_start(const std::string& held, const std::string& own) {
  return !own.empty() && held != own && held.substr(0, held.find('.')) == own.substr(0, own.find('.'));
}

// Watches a lock whose run may live. A process of this host may be about to end, since its launcher was killed; of
// another host only the beats are seen.
bool lives(const Holder& before, const fs::path& file, std::chrono::milliseconds period) {
  const bool is_here = before.is_here();
  const auto patience = is_here ? std::min(kPatience, period) : kPeriodsUntilDead * period;
  const auto begin = std::chrono::steady_clock::now();
  bool seen = is_here;
  while (std::chrono::steady_clock::now() - begin < patience) {
    std::this_thread::sleep_for(patience / 60);
    const std::optional<Holder> now = read_holder(file);
    seen = now && (is_here ? !now->is_gone() : now->id != before.id || now->beat != before.beat);
    if (seen != is_here) break;  // it has ended; or it lives on its host
  }
  return seen;
}

}  // namespace

fs::path OutputLock::file_in(const fs::path& folder) {
  return folder / kLockFile;
}

OutputLock::OutputLock(const fs::path& folder, const Environment& environment, std::chrono::milliseconds period)
    : file_(file_in(folder)), id_(new_id()), job_(job_of(environment)), period_(period) {
  const std::optional<Holder> before = read_holder(file_);
  if (before && !before->is_gone() && !is_earlier_start(before->job, job_) && lives(*before, file_, period_)) {
    throw UsageError(
        fmt::format("{} is in use by another run, process {} on {}{}: give this one another --output_dir, or wait for "
                    "it (its lock is {})",
                    folder.string(), before->process, before->host,
                    before->job.empty() ? "" : fmt::format(", Slurm job {}", before->job), file_.string()));
  }
  std::error_code ignored;
  if (is_there(file_)) log_info("the last run into {} did not end by itself", folder.string());
  fs::remove(file_, ignored);
  // Of several runs that come this far at the same moment, one creates it.
  const int created = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (created < 0 && errno == EEXIST) {
    throw UsageError(fmt::format("{} was just taken by another run (its lock is {})", folder.string(), file_.string()));
  }
  if (created >= 0) ::close(created);
  write(0);
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
  throw UsageError(fmt::format("{} is now used by process {} on {}: this run was taken for dead",
                               file_.parent_path().string(), holder->process, holder->host));
}

void OutputLock::write(std::int64_t beat) const {
  const Json json = {{"id", id_},
                     {"host", host_name()},
                     {"process", ::getpid()},
                     {"process_space", process_space()},
                     {"process_start", start_of(::getpid())},
                     {"job", job_},
                     {"beat", beat}};
  write_file_atomically(file_, json.dump() + "\n");
}

void OutputLock::keep_beating(const std::stop_token& stop) {
  for (std::int64_t beat = 1; sleep_until(stop, std::chrono::steady_clock::now() + period_); ++beat) {
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
