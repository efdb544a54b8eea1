#include "launch/launcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <future>
#include <memory>

#include "core/error.h"
#include "launch/agreement.h"
#include "launch/crew.h"
#include "launch/nodes.h"
#include "launch/order.h"
#include "launch/pinning.h"
#include "launch/say.h"
#include "launch/verdict.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr int kTailLines = 8;

// TMPDIR for the launcher and everything it starts: absolute, since they work in their own folders, and existing, or
// mpirun could not start.
Environment with_usable_tmpdir(Environment environment) {
  const auto given = environment.find("TMPDIR");
  if (!given) return environment;
  std::error_code error;
  const fs::path path = fs::absolute(*given, error);
  if (!error && fs::is_directory(path, error)) {
    environment.set("TMPDIR", path.string());
  } else {
    say("TMPDIR={}: there is no such folder; using /tmp", *given);
    environment.set("TMPDIR", "/tmp");
  }
  return environment;
}

// Private; removed when the launcher exits. Its path must fit in a socket's address, so a long TMPDIR is not used.
class RunFolder {
 public:
  explicit RunFolder(const Environment& environment) {
    std::string base = environment.find("TMPDIR").value_or("/tmp");
    if (base.size() > 70) base = "/tmp";
    path_ = base + "/tessera-launch-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) throw Error("cannot make a folder in " + base + ": " + std::strerror(errno));
  }
  ~RunFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class Launcher {
 public:
  Launcher(const LaunchPlan& plan, const HostFacts& host, Environment environment, std::string self)
      : plan_(plan), host_(host), environment_(std::move(environment)), self_(std::move(self)), folder_(environment_) {
    order_ = first_order();
  }

  int run();

 private:
  RankOrder first_order() const;
  void make_log_dir();
  void meet_other_nodes();
  Verdict attempt(int number);
  CrewResult run_crew(Agreement* agreement);
  void report(const Verdict& verdict) const;
  void report_log(const RankEnd& end) const;

  const LaunchPlan& plan_;
  const HostFacts& host_;
  const Environment environment_;
  std::string self_;
  SignalInbox inbox_{{SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}};
  RunFolder folder_;
  std::unique_ptr<NodeCircle> circle_;  // with several nodes
  RankOrder order_;
  std::map<std::string, std::int64_t> log_starts_;  // where this attempt's lines begin
};

int Launcher::run() {
  make_log_dir();
  if (plan_.num_nodes > 1) meet_other_nodes();
  for (int number = 0;; ++number) {
    const Verdict verdict = attempt(number);
    if (!verdict.restart) {
      report(verdict);
      return verdict.status;
    }
    say("restart {} of {} after rank {} failed: {}", number + 1, plan_.max_restarts, verdict.failure->rank,
        cause_of(*verdict.failure));
  }
}

RankOrder Launcher::first_order() const {
  RankOrder order;
  order.folder = folder_.path();
  order.command = plan_.command;
  order.node_rank = plan_.node_rank;
  order.num_nodes = plan_.num_nodes;
  order.num_local_ranks = plan_.num_local_ranks;
  order.master_addr = plan_.num_nodes > 1 ? plan_.head_host : "127.0.0.1";
  order.run_id = plan_.run_id;
  order.max_restarts = plan_.max_restarts;
  order.log_dir = plan_.log_dir;
  order.tee = plan_.tee;
  order.environment = variables_to_restore(environment_, plan_.starter);
  if (!environment_.find("OMP_NUM_THREADS")) {
    order.environment["OMP_NUM_THREADS"] = std::to_string(threads_per_rank(host_.cpus, plan_.num_local_ranks));
  }
  if (plan_.pin) order.cpus = share_cpus(host_.cpus, plan_.num_local_ranks);
  if (plan_.pin && order.cpus.empty()) {
    say("{} ranks share {} processor{}: none is pinned", plan_.num_local_ranks, host_.cpus.size(),
        host_.cpus.size() == 1 ? "" : "s");
  }
  return order;
}

void Launcher::make_log_dir() {
  if (plan_.log_dir.empty()) return;
  std::error_code error;
  fs::create_directories(plan_.log_dir, error);
  if (error) throw UsageError(fmt::format("--log_dir {}: {}", plan_.log_dir, error.message()));
  if (access(plan_.log_dir.c_str(), W_OK) != 0) {
    throw UsageError(fmt::format("--log_dir {}: {}", plan_.log_dir, std::strerror(errno)));
  }
  for (int local_rank = 0; local_rank < plan_.num_local_ranks; ++local_rank) {
    const std::string log = log_path(order_, local_rank);
    if (fs::is_directory(log, error)) throw UsageError(fmt::format("--log_dir: {} is a folder, not a log file", log));
    if (fs::exists(log, error) && access(log.c_str(), W_OK) != 0) {
      throw UsageError(fmt::format("--log_dir: cannot write {}: {}", log, std::strerror(errno)));
    }
  }
}

// In a thread, so that a signal can interrupt the wait: nothing has been started yet that would need an orderly end.
void Launcher::meet_other_nodes() {
  const NodeCircle::Place place{.node_rank = plan_.node_rank,
                                .num_nodes = plan_.num_nodes,
                                .host = plan_.head_host,
                                .port = plan_.head_port,
                                .run_id = plan_.run_id,
                                .settings = {{"--nproc_per_node", std::to_string(plan_.num_local_ranks)},
                                             {"--max_restarts", std::to_string(plan_.max_restarts)}},
                                .meet_timeout = plan_.start_timeout,
                                .node_timeout = plan_.node_timeout};
  auto meeting = std::async(std::launch::async, [&] { return std::make_unique<NodeCircle>(place); });
  while (meeting.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
    while (const auto signal = inbox_.next()) {
      if (*signal == SIGCHLD) continue;
      say("{} while waiting for the other nodes", signal_name(*signal));
      fs::remove_all(folder_.path());
      _exit(128 + *signal);
    }
  }
  circle_ = meeting.get();
}

Verdict Launcher::attempt(int number) {
  order_.restart_count = number;
  const auto agreement =
      circle_ ? std::make_unique<Agreement>(*circle_, plan_.node_rank, plan_.num_nodes, number, inbox_) : nullptr;
  std::unique_ptr<RankLobby> lobby;
  if (plan_.node_rank == 0) {
    lobby = std::make_unique<RankLobby>(plan_.num_nodes > 1 ? 0 : plan_.head_port, order_.world_size(),
                                        plan_.start_timeout, plan_.run_id);
    order_.master_port = lobby->port();
    if (agreement) agreement->announce_lobby(lobby->port());
  } else {
    const auto port = agreement->find_lobby(plan_.start_timeout);
    if (!port) return agreement->lost_verdict();
    order_.master_port = *port;
  }
  Verdict verdict = judge(run_crew(agreement.get()));
  if (agreement) return agreement->settle(verdict, plan_.max_restarts);
  verdict.restart = verdict.failure && !verdict.interrupted && number < plan_.max_restarts;
  return verdict;
}

CrewResult Launcher::run_crew(Agreement* agreement) {
  for (int local_rank = 0; local_rank < plan_.num_local_ranks; ++local_rank) {
    std::error_code ignored;
    fs::remove(failure_path(order_, local_rank), ignored);
    const std::string log = log_path(order_, local_rank);
    const auto size = fs::file_size(log, ignored);
    log_starts_[log] = ignored ? 0 : static_cast<std::int64_t>(size);
  }
  write_order(order_);
  StartRequest request;
  request.starter = plan_.starter;
  request.minder = minder_command(self_);
  request.run_folder = folder_.path();
  request.num_ranks = plan_.num_local_ranks;
  request.more_ranks_than_cpus = plan_.num_local_ranks > static_cast<int>(host_.cpus.size());
  request.environment = environment_;
  request.signal_mask = inbox_.former_mask();
  Crew::Options options{.start_timeout = plan_.start_timeout, .stop_timeout = plan_.stop_timeout};
  if (agreement != nullptr) {
    options.must_stop = [=] { return agreement->must_stop(); };
    options.on_failure = [=] { agreement->announce_failure(); };
  }
  return Crew(order_, request, inbox_, options).run();
}

// The last lines that a user sees, so the failed rank comes last, followed only by its log.
void Launcher::report(const Verdict& verdict) const {
  if (!verdict.trouble.empty()) say("{}", verdict.trouble);
  if (verdict.signal != 0) say("ended by {}", signal_name(verdict.signal));
  if (!verdict.failure) return;
  say("{}", describe(*verdict.failure));
  if (!verdict.failure->log_file.empty()) report_log(*verdict.failure);
}

void Launcher::report_log(const RankEnd& end) const {
  const auto start = log_starts_.find(end.log_file);
  const bool is_here = start != log_starts_.end();
  if (is_here && end.message.empty() && !plan_.tee) {
    const auto lines = last_lines(end.log_file, start->second, kTailLines);
    if (!lines.empty()) say_line("its last lines:");
    for (const std::string& line : lines) say_line("  | " + line);
  }
  say_line("log: " + end.log_file);
}

}  // namespace

int run_launcher(const LaunchPlan& plan, const HostFacts& host, const Environment& environment,
                 const std::string& self) {
  if (!plan.head_host.empty()) check_resolves(plan.head_host);
  for (const std::string& remark : plan.remarks) say("{}", remark);
  return Launcher(plan, host, with_usable_tmpdir(environment), self).run();
}

}  // namespace tessera
