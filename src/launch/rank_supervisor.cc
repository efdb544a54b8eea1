#include "launch/rank_supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "core/host.h"
#include "core/quantity.h"
#include "core/text.h"
#include "launch/exit_report.h"
#include "launch/output.h"

namespace tessera {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kGrace{1000};       // between SIGTERM and SIGKILL when a rank has failed
constexpr milliseconds kRunnerGrace{400};  // what a runner gets beyond that before it is killed itself
// A rank that fails because of another may exit before it: wait a little for the other's end, which has the reason.
constexpr milliseconds kCulpritGrace{300};
constexpr milliseconds kLateSignal{200};
constexpr milliseconds kStarterGrace{5000};
constexpr milliseconds kPollInterval{100};
constexpr std::size_t kNameLength = 15;      // of a process, as the kernel keeps it
constexpr milliseconds kStoppedGrace{1000};  // between two looks for stopped processes

}  // namespace

RankSupervisor::RankSupervisor(const RankOrder& order, const StartRequest& request, SignalInbox& inbox, Options options)
    : order_(order),
      inbox_(inbox),
      options_(std::move(options)),
      listener_(listen_at(socket_path(order.folder))),
      by_mpirun_(request.starter == Starter::kMpirun),
      runner_program_(std::filesystem::path(request.runner.front()).filename().string().substr(0, kNameLength)),
      has_begun_(static_cast<std::size_t>(order.num_local_ranks)),
      ends_(has_begun_.size()) {
  started_ = start_runners(order, request);
  start_deadline_ = Clock::now() + options_.start_timeout;
}

RankSupervisor::~RankSupervisor() {
  if (!all_gone()) kill_everything();  // an exception is unwinding: leave nothing behind
  unlink(socket_path(order_.folder).c_str());
}

SupervisionResult RankSupervisor::run() {
  while (!all_gone()) {
    wait_for_news();
    // First, since a signal to all processes of a job explains why ranks end.
    hear_signals();
    welcome_runners();
    // Before mpirun, since a runner reports its rank's end before mpirun can see it.
    for (std::size_t i = 0; i < members_.size(); ++i) hear(members_[i]);
    hear_mpirun();
    reap();
    mind_the_clock();
  }
  hear_mpirun();
  for (int local_rank = 0; local_rank < order_.num_local_ranks; ++local_rank) {
    result_.ends.push_back(end_of(local_rank));
  }
  blame_mpirun();
  explain_by_mpirun();
  note_late_signals();
  return std::move(result_);
}

// A signal that came too late to be passed on still forbids a restart. A whole job is ended by signalling its processes
// one by one, perhaps the ranks first: if a rank died of such a signal, wait a moment for the launcher's.
void RankSupervisor::note_late_signals() {
  const RankEnd* failure = first_failure(result_.ends);
  const bool is_suspicious = failure != nullptr && asks_to_end(failure->signal);
  const auto until = Clock::now() + (is_suspicious ? kLateSignal : milliseconds(0));
  do {
    while (const auto signal = inbox_.next()) result_.interrupted = result_.interrupted || asks_to_end(*signal);
    pollfd inbox{inbox_.fd(), POLLIN, 0};
    if (!result_.interrupted && is_suspicious) poll(&inbox, 1, 20);
  } while (!result_.interrupted && Clock::now() < until);
}

// Without mpirun, ranks cannot go on. One that crashes when all have ended, as Open MPI's sometimes does, harms none.
void RankSupervisor::blame_mpirun() {
  if (!result_.trouble.empty()) return;
  if (mpirun_died_first_) {
    result_.trouble = (mpirun_exit_.empty() ? "mpirun ended" : mpirun_exit_) + " while ranks were running";
    result_.trouble_status = mpirun_exit_status_;
  } else if (result_.killed_mpirun != 0 && !mpirun_exit_.empty() && !any_rank_left() && !any_has_failed()) {
    say("{} after all ranks had ended well", mpirun_exit_);
  }
}

// mpirun itself ends all ranks when one breaks MPI's rules, for example by exiting with 0 without MPI_Finalize. No rank
// has failed then, and mpirun's output is the only explanation.
void RankSupervisor::explain_by_mpirun() {
  const RankEnd* failure = first_failure(result_.ends);
  if (failure == nullptr || !is_consequence(*failure) || !failure->message.empty() || result_.interrupted) return;
  const std::string explanation = explanation_in(mpirun_words_);
  if (!result_.trouble.empty() || explanation.empty()) return;
  result_.trouble = "mpirun ended the ranks:\n" + explanation;
  result_.trouble_status = failure->exit_status;
}

void RankSupervisor::wait_for_news() {
  std::vector<pollfd> fds = {{listener_.get(), POLLIN, 0}, {inbox_.fd(), POLLIN, 0}};
  if (started_.mpirun_text) fds.push_back({started_.mpirun_text.get(), POLLIN, 0});
  for (const Member& member : members_) {
    if (member.is_open) fds.push_back({member.line.fd(), POLLIN, 0});
  }
  poll(fds.data(), fds.size(), static_cast<int>(kPollInterval.count()));
}

void RankSupervisor::welcome_runners() {
  while (auto line = accept_line(listener_)) members_.push_back(Member{.line = std::move(*line)});
}

void RankSupervisor::hear(Member& member) {
  Json packet;
  while (member.is_open) {
    switch (member.line.receive(&packet)) {
      case Line::Got::kPacket:
        take(member, packet);
        break;
      case Line::Got::kNothingYet:
        return;
      case Line::Got::kEnd:
        member.is_open = false;
        if (member.local_rank < 0 || ends_[static_cast<std::size_t>(member.local_rank)]) return;
        // The runner is gone and did not report its rank, which the kernel has killed with it.
        if (member.rank_pid > 0) kill(-member.rank_pid, SIGKILL);
        take_end(member,
                 {.exit_status = 128 + SIGKILL,
                  .signal = SIGKILL,
                  .time_ms = now_ms(),
                  .was_told_to_stop = stopping_ || by_mpirun_,
                  .note = "its minder process was killed"},
                 0);
    }
  }
}

void RankSupervisor::take(Member& member, const Json& packet) {
  const std::string word = packet.at("is");
  if (word == "hello") {
    member.local_rank = std::clamp(packet.at("local_rank").get<int>(), 0, order_.num_local_ranks - 1);
    member.runner_pid = packet.at("pid");
    has_begun_[static_cast<std::size_t>(member.local_rank)] = true;
    if (stopping_ || result_.signal != 0) {
      member.line.send({{"do", "stop"}, {"grace_ms", 0}});
    } else {
      member.line.send({{"do", "begin"}, {"secret", options_.secret}}, {STDOUT_FILENO, STDERR_FILENO});
    }
  } else if (word == "started") {
    member.rank_pid = packet.at("pid");
  } else if (word == "ended") {
    take_end(member, packet.at("end"), packet.at("starter_died_ms"));
  }
}

void RankSupervisor::take_end(const Member& member, RankEnd end, std::int64_t starter_died_ms) {
  // A rank that ends by a signal that was passed on did as asked (SIGUSR1: save and stop).
  const bool did_as_asked = passed_on_ != 0 && end.exit_status == 128 + passed_on_;
  if (did_as_asked) result_.interrupted = true;
  add_last_words(end, failure_path(order_, member.local_rank));
  // What it says that it failed of before that is its own failure.
  const bool failed_before = !end.message.empty() && end.time_ms < starter_died_ms;
  const bool outlived_mpirun = by_mpirun_ && starter_died_ms > 0 && !failed_before;
  mpirun_died_first_ = mpirun_died_first_ || outlived_mpirun;
  // Whatever the rank says.
  if (did_as_asked || outlived_mpirun) end.says_consequence = true;
  ends_[static_cast<std::size_t>(member.local_rank)] = end;
  // After SIGTERM, ranks may exit in any way within their time limit.
  if (result_.signal != 0 || !end.failed()) return;
  if (!did_as_asked) return note_failure(is_consequence(end));
  // The others are about to do the same and get as long as after SIGTERM.
  if (!stop_at_) stop_at_ = Clock::now() + options_.stop_timeout;
}

void RankSupervisor::hear_mpirun() {
  std::array<char, 4096> buffer;
  while (started_.mpirun_text) {
    const ssize_t count = read(started_.mpirun_text.get(), buffer.data(), buffer.size());
    if (count < 0) return;
    if (count == 0) started_.mpirun_text.reset();
    // After a failure mpirun mostly reports at length that a process has ended; our report does that better.
    const bool is_over = failure_known_ || result_.interrupted || result_.signal != 0;
    const bool is_chatter = is_over && missing_ranks().empty();
    const std::string_view text(buffer.data(), static_cast<std::size_t>(count));
    if (is_chatter) {
      mpirun_words_ += text;
    } else {
      std::fwrite(text.data(), 1, text.size(), stderr);
    }
  }
}

void RankSupervisor::hear_signals() {
  while (const auto signal = inbox_.next()) {
    if (*signal != SIGCHLD) take_signal(*signal);
  }
}

void RankSupervisor::take_signal(int signal) {
  const bool ends = asks_to_end(signal);
  result_.interrupted = result_.interrupted || ends;
  if (ends && result_.signal != 0) {
    say("{} again: ending the ranks at once", signal_name(signal));
    return stop(milliseconds(0));
  }
  passed_on_ = signal;
  for (const Member& member : members_) {
    if (member.is_open) member.line.send({{"do", "signal"}, {"signal", signal}});
  }
  if (!ends || stopping_) return;
  result_.signal = signal;
  signal_deadline_ = Clock::now() + options_.stop_timeout;
  say("{}: passed on to the ranks, which have {} to exit", signal_name(signal), format_duration(options_.stop_timeout));
}

void RankSupervisor::reap() {
  for (std::size_t i = 0; i < started_.pids.size(); ++i) {
    int status = 0;
    pid_t& pid = started_.pids[i];
    if (pid <= 0 || waitpid(pid, &status, WNOHANG) != pid) continue;
    if (by_mpirun_ && WIFSIGNALED(status)) result_.killed_mpirun = pid;
    pid = -1;
    note_exit(i, status);
  }
}

// mpirun, or the runner of local rank `index`, has exited: unexpected if ranks have not started or still run.
void RankSupervisor::note_exit(std::size_t index, int wait_status) {
  welcome_runners();  // its hello may still be unread
  for (std::size_t i = 0; i < members_.size(); ++i) hear(members_[i]);
  const bool killed = WIFSIGNALED(wait_status);
  const int status = killed ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
  const std::string how = fmt::format(
      "{} {}", by_mpirun_ ? "mpirun" : "a minder process",
      killed ? "was killed by " + signal_name(WTERMSIG(wait_status)) : fmt::format("exited with status {}", status));
  if (by_mpirun_ && !killed_before_) {
    mpirun_exit_ = how;
    if (status != 0) mpirun_exit_status_ = status;
  }
  if (stopping_ || result_.signal != 0) return;
  if (by_mpirun_ ? !missing_ranks().empty() : !has_begun_[index]) {
    const std::vector<int> ranks = by_mpirun_ ? missing_ranks() : std::vector{order_.rank(static_cast<int>(index))};
    note_trouble(fmt::format("{} before rank {} had started", how, format_ranges(ranks)), status);
  } else if (by_mpirun_ && any_rank_left()) {
    mpirun_died_first_ = true;
    note_failure(false);
  }
}

void RankSupervisor::mind_the_clock() {
  const auto now = Clock::now();
  const auto is_due = [&](std::optional<Clock::time_point>& deadline) {
    if (!deadline || now < *deadline) return false;
    deadline.reset();
    return true;
  };
  if (missing_ranks().empty()) start_deadline_.reset();
  if (by_mpirun_ && start_deadline_) notice_lost_runners();
  if (is_due(start_deadline_)) {
    note_trouble(fmt::format("rank {} did not start within {}{}", format_ranges(missing_ranks()),
                             format_duration(options_.start_timeout), starter_state()),
                 static_cast<int>(ExitStatus::kRendezvous));
  }
  if (!stopping_ && options_.must_stop && options_.must_stop()) stop(kGrace);
  if (is_due(signal_deadline_)) {
    say("ranks still run {} after {}: killing them", format_duration(options_.stop_timeout),
        signal_name(result_.signal));
    stop(milliseconds(0));
  }
  if (is_due(stop_at_)) stop(kGrace);
  if (now >= look_for_stopped_at_) {
    look_for_stopped_at_ = now + kStoppedGrace;
    continue_stopped();
  }
  // All ranks have ended and only mpirun is left, which should exit within milliseconds.
  if (!kill_at_ && missing_ranks().empty() && !any_runner_left()) kill_at_ = now + kStarterGrace;
  if (is_due(kill_at_)) kill_everything();
}

void RankSupervisor::note_failure(bool of_another) {
  if (!failure_known_ && options_.on_failure) options_.on_failure();
  failure_known_ = true;
  if (!of_another) return stop(kGrace);
  if (!stop_at_) stop_at_ = Clock::now() + kCulpritGrace;
}

void RankSupervisor::note_trouble(const std::string& trouble, int status) {
  if (result_.trouble.empty()) {
    result_.trouble = trouble;
    result_.trouble_status = status != 0 ? status : static_cast<int>(ExitStatus::kFailure);
  }
  note_failure(false);
}

void RankSupervisor::stop(milliseconds grace) {
  if (stopping_ && grace > milliseconds(0)) return;
  stopping_ = true;
  for (const Member& member : members_) {
    if (member.is_open) member.line.send({{"do", "stop"}, {"grace_ms", grace.count()}});
  }
  kill_at_ = Clock::now() + grace + kRunnerGrace;
}

// The last resort: for runners that do not answer, and for an mpirun that does not notice that its processes are gone.
void RankSupervisor::kill_everything() {
  if (const std::string state = starter_state(); !state.empty() && !killed_before_) say("ending the run{}", state);
  for (const Member& member : members_) {
    if (!member.is_open) continue;
    if (member.rank_pid > 0) kill(-member.rank_pid, SIGKILL);
    if (member.runner_pid > 0) kill(member.runner_pid, SIGKILL);
  }
  // mpirun removes its folders and segments of shared memory when it ends by SIGTERM, but not by SIGKILL.
  for (pid_t pid : started_.pids) {
    if (pid > 0) kill(pid, by_mpirun_ && !killed_before_ ? SIGTERM : SIGKILL);
    if (pid > 0) kill(pid, SIGCONT);  // a stopped one could not act on it
  }
  killed_before_ = true;
  kill_at_ = Clock::now() + kRunnerGrace;
}

bool RankSupervisor::any_runner_left() const {
  return std::ranges::any_of(members_, &Member::is_open);
}

bool RankSupervisor::all_gone() const {
  return !any_runner_left() && std::ranges::all_of(started_.pids, [](pid_t pid) { return pid <= 0; });
}

bool RankSupervisor::any_rank_left() const {
  return !std::ranges::all_of(ends_, &std::optional<RankEnd>::has_value);
}

std::vector<int> RankSupervisor::missing_ranks() const {
  std::vector<int> ranks;
  for (int local_rank = 0; local_rank < order_.num_local_ranks; ++local_rank) {
    if (!has_begun_[static_cast<std::size_t>(local_rank)]) ranks.push_back(order_.rank(local_rank));
  }
  return ranks;
}

RankEnd RankSupervisor::end_of(int local_rank) const {
  const RankEnd unknown{.exit_status = 128 + SIGTERM, .signal = SIGTERM, .time_ms = now_ms(), .was_told_to_stop = true};
  RankEnd end = ends_[static_cast<std::size_t>(local_rank)].value_or(unknown);
  end.rank = order_.rank(local_rank);
  end.host = host_name();
  end.log_file = log_path(order_, local_rank);
  return end;
}

}  // namespace tessera
