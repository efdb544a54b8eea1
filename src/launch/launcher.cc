#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <future>
#include <memory>

#include "comm/meeting/handshake.h"
#include "comm/meeting/meeting_place.h"
#include "comm/socket.h"
#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "launch/exit_report.h"
#include "launch/host_resources.h"
#include "launch/nodes.h"
#include "launch/output.h"
#include "launch/rank_supervisor.h"
#include "launch/run_folder.h"
#include "launch/settings.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr int kTailLines = 8;
// The supervisor, which knows how a rank ended, ends the others first; the meeting place speaks where it cannot.
constexpr std::chrono::milliseconds kSupervisorFirst{1500};

// What the launchers of a job, or the launcher and its ranks, share. On one node nobody else need know it; the
// launchers of several find it in the environment or in the user's file.
Key secret_of_run(const LaunchPlan& plan, const Environment& environment) {
  if (const auto given = take_secret_of_environment()) return *given;
  return plan.num_nodes > 1 ? secret_of_file(environment) : random_key();
}

// For the launcher and everything it starts. TMPDIR is absolute, since they work in their own folders, and existing, or
// mpirun could not start.
Environment for_children(Environment environment) {
  environment.unset(kSecretVariable);  // it reaches the ranks by their runners, and nobody else
  const auto given = environment.find("TMPDIR");
  if (!given) return environment;
  std::error_code error;
  const fs::path path = fs::absolute(*given, error);
  if (!error && is_folder(path)) {
    environment.set("TMPDIR", path.string());
  } else {
    say("TMPDIR={}: there is no such folder; using /tmp", *given);
    environment.set("TMPDIR", "/tmp");
  }
  return environment;
}

fs::path temporary_folder(const Environment& environment) {
  return environment.find("TMPDIR").value_or("/tmp");
}

class Launcher {
 public:
  Launcher(const LaunchPlan& plan, const HostFacts& host, Environment environment, std::string self)
      : plan_(plan),
        host_(host),
        environment_(std::move(environment)),
        secret_(secret_of_run(plan, environment_)),
        self_(std::move(self)),
        folder_(environment_) {
    order_ = first_order();
  }

  int run();

 private:
  RankOrder first_order() const;
  void make_log_dir();
  void meet_other_nodes();
  Verdict attempt(int number);
  std::unique_ptr<MeetingPlace> open_meeting(const Key& secret) const;
  SupervisionResult supervise_ranks(Agreement* agreement, const Key& secret);
  void report(const Verdict& verdict) const;
  void report_log(const RankEnd& end) const;

  const LaunchPlan& plan_;
  const HostFacts& host_;
  const Environment environment_;
  const Key secret_;
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
    const RankEnd& failure = *verdict.failure;
    say("restart {} of {} after {}{}", number + 1, plan_.max_restarts,
        failure.says_finding ? "" : fmt::format("rank {} failed: ", failure.rank), cause_of(failure));
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
    if (is_folder(log)) throw UsageError(fmt::format("--log_dir: {} is a folder, not a log file", log));
    if (is_there(log) && access(log.c_str(), W_OK) != 0) {
      throw UsageError(fmt::format("--log_dir: cannot write {}: {}", log, std::strerror(errno)));
    }
  }
}

// In a thread, so that a signal can interrupt the wait: nothing has been started yet that would need an orderly end.
void Launcher::meet_other_nodes() {
  const JoinOptions place{.host = plan_.head_host,
                          .port = plan_.head_port,
                          .key = keyed_hash(secret_, {"nodes", plan_.run_id}),
                          .self = {.rank = plan_.node_rank,
                                   .world_size = plan_.num_nodes,
                                   .settings = {{"--nproc_per_node", std::to_string(plan_.num_local_ranks)},
                                                {"--max_restarts", std::to_string(plan_.max_restarts)}}},
                          .timeout = plan_.start_timeout,
                          .silence = plan_.node_timeout};
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
  const Key secret = keyed_hash(secret_, {"ranks", plan_.run_id, std::to_string(number)});
  std::unique_ptr<MeetingPlace> place;
  if (plan_.node_rank == 0) {
    place = open_meeting(secret);
    order_.master_port = place->port();
    if (agreement) agreement->announce_meeting(place->port());
  } else {
    const auto port = agreement->find_meeting(plan_.start_timeout);
    if (!port) return agreement->lost_verdict();
    order_.master_port = *port;
  }
  const SupervisionResult result = supervise_ranks(agreement.get(), secret);
  if (result.killed_mpirun > 0) remove_session(result.killed_mpirun, temporary_folder(environment_));
  Verdict verdict = judge(result);
  if (agreement) return agreement->settle(verdict, plan_.max_restarts);
  verdict.restart = verdict.failure && !verdict.interrupted && number < plan_.max_restarts;
  return verdict;
}

std::unique_ptr<MeetingPlace> Launcher::open_meeting(const Key& secret) const {
  MeetingOptions meeting;
  if (plan_.num_nodes > 1) meeting.interface = interface_of(plan_.head_host, /*one_host=*/false);
  meeting.port = plan_.num_nodes > 1 ? 0 : plan_.head_port;
  meeting.num_peers = order_.world_size();
  meeting.key = job_key(secret, plan_.run_id);
  meeting.timeout = plan_.start_timeout;
  meeting.holder = "the launcher";
  for (int node = 0; node < plan_.num_nodes; ++node) {
    const std::string host = circle_ ? circle_->host(node) : host_name();
    meeting.hosts.insert(meeting.hosts.end(), static_cast<std::size_t>(plan_.num_local_ranks), host);
  }
  meeting.loss_grace = kSupervisorFirst;
  return std::make_unique<MeetingPlace>(std::move(meeting));
}

SupervisionResult Launcher::supervise_ranks(Agreement* agreement, const Key& secret) {
  for (int local_rank = 0; local_rank < plan_.num_local_ranks; ++local_rank) {
    std::error_code ignored;
    fs::remove(failure_path(order_, local_rank), ignored);
    const std::string log = log_path(order_, local_rank);
    const auto size = fs::file_size(log, ignored);
    log_starts_[log] = ignored ? 0 : static_cast<std::int64_t>(size);
  }
  write_order(order_);
  const StartRequest request{.starter = plan_.starter,
                             .runner = runner_command(self_),
                             .more_ranks_than_cpus = plan_.num_local_ranks > static_cast<int>(host_.cpus.size()),
                             .environment = environment_,
                             .signal_mask = inbox_.former_mask()};
  RankSupervisor::Options options{
      .start_timeout = plan_.start_timeout, .stop_timeout = plan_.stop_timeout, .secret = to_hex(secret)};
  if (agreement != nullptr) {
    options.must_stop = [=] { return agreement->must_stop(); };
    options.on_failure = [=] { agreement->announce_failure(); };
  }
  return RankSupervisor(order_, request, inbox_, options).run();
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
  if (!plan.head_host.empty()) check_host_resolves(plan.head_host);
  for (const std::string& remark : plan.remarks) say("{}", remark);
  const Environment usable = for_children(environment);
  remove_leftovers(temporary_folder(usable));
  return Launcher(plan, host, usable, self).run();
}

}  // namespace tessera
