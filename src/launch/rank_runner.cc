#include "launch/rank_runner.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "comm/meeting/handshake.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "core/text.h"
#include "launch/exit_report.h"
#include "launch/oom.h"
#include "launch/output.h"
#include "launch/run_folder.h"
#include "launch/wire.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

// ms in which a starter that is about to die, since its lines are closed already, is dead.
constexpr int kDying = 100;
constexpr int kLook = 500;  // ms between two looks at the starter, where the kernel cannot tell of its end

RankOutput::Choice output_of(const RankOrder& order, int local_rank) {
  const int rank = order.rank(local_rank);
  RankOutput::Choice choice;
  choice.log_file = log_path(order, local_rank);
  choice.show = choice.log_file.empty() || order.tee || rank == 0;
  if (order.tee) choice.prefix = "[rank " + std::to_string(rank) + "] ";
  return choice;
}

// ENOENT for a file that exists refers to what the file names: the interpreter of a script, the loader of a program.
std::string why_not_started(const std::string& program, int error) {
  if (error != ENOENT || !is_there(program)) return std::strerror(error);
  std::ifstream file(program);
  std::string line;
  std::getline(file, line);
  if (!line.starts_with("#!")) return "the loader or libraries that it was built for are missing here";
  if (line.ends_with('\r')) return "its first line ends with a carriage return, as on Windows (fix: sed -i 's/\\r$//')";
  const std::string words(trim(line.substr(2)));
  return "its interpreter '" + words.substr(0, words.find_first_of(" \t")) + "' (first line) does not exist";
}

class RankRunner {
 public:
  RankRunner(RankOrder order, int local_rank)
      : order_(std::move(order)), local_rank_(local_rank), line_(connect_to(socket_path(order_.folder))) {}

  int run();

 private:
  void start(std::array<Fd, 2> console);
  [[noreturn]] void become_rank(int error_fd);
  void watch();
  void hear_launcher();
  void hear_signal();
  void obey(const Json& packet, std::array<Fd, 2> fds);
  void signal_rank(int signal) const;
  void reap();
  void look_at_starter();
  void end_leftovers() const;
  int report(std::int64_t ended_ms);

  RankOrder order_;
  int local_rank_;
  Line line_;
  SignalInbox inbox_{{SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD}};
  OomWatch oom_;
  std::optional<RankOutput> output_;
  const pid_t runner_pid_ = getpid();
  // mpirun, or the launcher itself: if it died before the rank, it is to blame for the rank's end.
  const pid_t starter_pid_ = getppid();
  const Fd starter_{static_cast<int>(syscall(SYS_pidfd_open, starter_pid_, 0))};
  std::int64_t starter_died_ms_ = 0;
  pid_t rank_pid_ = -1;
  std::optional<int> wait_status_;
  std::optional<Clock::time_point> kill_at_;
  bool was_told_to_stop_ = false;
  bool launcher_gone_ = false;
  std::string note_;
  std::string secret_;  // for the rank's environment
};

int RankRunner::run() {
  // Orphans of the rank become children of this process, so that end_leftovers() finds them.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::signal(SIGPIPE, SIG_IGN);
  line_.send({{"is", "hello"}, {"local_rank", local_rank_}, {"pid", runner_pid_}});
  while (!wait_status_) watch();
  const std::int64_t ended_ms = now_ms();
  end_leftovers();
  if (output_) output_->drain();
  if (*wait_status_ != 0 && !was_told_to_stop_) {
    pollfd starter{starter_.get(), POLLIN, 0};
    if (starter_died_ms_ == 0) poll(&starter, 1, kDying);
    look_at_starter();
  }
  const int status = report(ended_ms);
  // A launcher that was stopped could not report the end of the run: nothing goes on without it now.
  if (const pid_t launcher = line_.peer(); launcher > 0 && process_state(launcher) == 'T') kill(launcher, SIGCONT);
  std::error_code ignored;
  if (launcher_gone_) std::filesystem::remove_all(order_.folder, ignored);  // the launcher could not do it itself
  return status;
}

void RankRunner::watch() {
  std::vector<pollfd> fds = {{line_.fd(), POLLIN, 0}, {inbox_.fd(), POLLIN, 0}};
  if (output_) {
    for (int fd : output_->watched_fds()) fds.push_back({fd, POLLIN, 0});
  }
  if (starter_died_ms_ == 0) fds.push_back({starter_.get(), POLLIN, 0});
  int timeout_ms = starter_ ? -1 : kLook;
  if (kill_at_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*kill_at_ - Clock::now()).count();
    timeout_ms = static_cast<int>(std::max<std::int64_t>(0, left));
  }
  poll(fds.data(), fds.size(), timeout_ms);
  if (output_) output_->pump();
  look_at_starter();
  hear_launcher();
  hear_signal();
  reap();
  if (kill_at_ && Clock::now() >= *kill_at_) {
    kill_at_.reset();
    signal_rank(SIGKILL);
    if (rank_pid_ < 0) wait_status_ = SIGKILL;  // told to stop before it started
  }
}

void RankRunner::hear_launcher() {
  Json packet;
  std::array<Fd, 2> fds;
  for (;;) {
    switch (line_.receive(&packet, &fds)) {
      case Line::Got::kPacket:
        obey(packet, std::move(fds));
        break;
      case Line::Got::kNothingYet:
        return;
      case Line::Got::kEnd:
        // Nothing survives the launcher. The line stays readable at its end, so act only once.
        if (!launcher_gone_) kill_at_ = Clock::now();
        launcher_gone_ = true;
        return;
    }
  }
}

void RankRunner::obey(const Json& packet, std::array<Fd, 2> fds) {
  const std::string word = packet.at("do");
  if (word == "begin") {
    secret_ = packet.at("secret");
    start(std::move(fds));
  } else if (word == "signal") {
    signal_rank(packet.at("signal"));
  } else if (word == "stop") {
    was_told_to_stop_ = true;
    const auto deadline = Clock::now() + std::chrono::milliseconds(packet.at("grace_ms").get<int>());
    kill_at_ = kill_at_ ? std::min(*kill_at_, deadline) : deadline;
    signal_rank(SIGTERM);
    signal_rank(SIGCONT);  // a stopped rank could not act on it
    if (rank_pid_ < 0) wait_status_ = SIGTERM;
  }
}

// A signal to the runner itself comes from mpirun, or is meant for the rank.
void RankRunner::hear_signal() {
  while (const auto signal = inbox_.next()) {
    if (*signal == SIGCHLD) continue;
    if (asks_to_end(*signal)) was_told_to_stop_ = true;
    signal_rank(*signal);
    if (rank_pid_ < 0) wait_status_ = *signal;
  }
}

void RankRunner::signal_rank(int signal) const {
  if (rank_pid_ > 0 && !wait_status_) kill(-rank_pid_, signal);
}

void RankRunner::start(std::array<Fd, 2> console) {
  try {
    output_.emplace(output_of(order_, local_rank_), std::move(console));
  } catch (const Error& error) {
    note_ = error.what();
    wait_status_ = 1 << 8;
    return;
  }
  Pipe error_pipe;
  rank_pid_ = fork();
  if (rank_pid_ == 0) become_rank(error_pipe.write_end.get());
  if (rank_pid_ < 0) {
    note_ = std::string("cannot fork: ") + std::strerror(errno);
    wait_status_ = 1 << 8;
    return;
  }
  setpgid(rank_pid_, rank_pid_);  // in both processes: whichever runs first
  output_->close_rank_ends();
  error_pipe.write_end.reset();
  line_.send({{"is", "started"}, {"pid", rank_pid_}});
  // Reads no byte if exec has succeeded.
  int error = 0;
  if (read(error_pipe.read_end.get(), &error, sizeof error) == sizeof error) {
    note_ = "cannot start '" + order_.command[0] + "': " + why_not_started(order_.command[0], error);
  }
}

void RankRunner::become_rank(int error_fd) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != runner_pid_) _exit(128 + SIGKILL);  // the runner exited before this was set
  if (!order_.cpus.empty()) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (int cpu : order_.cpus[static_cast<std::size_t>(local_rank_)]) CPU_SET(cpu, &mask);
    sched_setaffinity(0, sizeof mask, &mask);  // if a core has gone offline, the run is slower but continues
  }
  for (const auto& [name, value] : rank_environment(order_, local_rank_)) setenv(name.c_str(), value.c_str(), 1);
  if (!secret_.empty()) setenv(kSecretVariable, secret_.c_str(), 1);
  // Ranks share no input: several readers of one terminal would each get a part.
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  output_->attach();
  std::signal(SIGPIPE, SIG_DFL);
  inbox_.restore_mask();
  std::vector<char*> words;
  for (std::string& word : order_.command) words.push_back(word.data());
  words.push_back(nullptr);
  execvp(words[0], words.data());
  const int error = errno;
  (void)!write(error_fd, &error, sizeof error);
  _exit(error == ENOENT ? 127 : 126);
}

void RankRunner::reap() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid == rank_pid_) wait_status_ = status;
  }
}

void RankRunner::look_at_starter() {
  if (starter_died_ms_ == 0 && getppid() != starter_pid_) starter_died_ms_ = now_ms();
}

// Kills the rank's process group and what has left the group: by now, children of this process.
void RankRunner::end_leftovers() const {
  if (rank_pid_ <= 0) return;
  kill(-rank_pid_, SIGKILL);
  for (int round = 0; round < 20; ++round) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const std::vector<pid_t> children = children_of(runner_pid_);
    if (children.empty()) return;
    for (const pid_t child : children) kill(child, SIGKILL);
    usleep(5000);
  }
}

int RankRunner::report(std::int64_t ended_ms) {
  const int status = *wait_status_;
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const int exit_status = signal != 0 ? 128 + signal : WEXITSTATUS(status);
  if (signal == SIGKILL && !was_told_to_stop_) note_ = oom_.verdict();
  const RankEnd end{.exit_status = exit_status,
                    .signal = signal,
                    .time_ms = ended_ms,
                    .was_told_to_stop = was_told_to_stop_,
                    .note = note_};
  line_.send({{"is", "ended"}, {"end", end}, {"starter_died_ms", starter_died_ms_}});
  return exit_status;
}

}  // namespace

int run_rank_runner(const std::vector<std::string>& args) {
  const auto environment = Environment::of_process();
  const auto local_rank = args.size() == 2 ? parse_integer(args[1]).value_or(-1)
                                           : environment.find_count("OMPI_COMM_WORLD_LOCAL_RANK").value_or(-1);
  if (args.empty() || args.size() > 2 || local_rank < 0) {
    throw UsageError("tessera launch starts the minders; do not start one by hand");
  }
  return RankRunner(read_order(args[0]), static_cast<int>(local_rank)).run();
}

}  // namespace tessera
