#include "soak/fault.h"

#include <fmt/format.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "core/host.h"
#include "support/program.h"

namespace tessera::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds kAtOnce{5};                  // a dead process
constexpr std::chrono::seconds kByLimit = kCommLimit + 5s;  // a silent one
constexpr std::chrono::seconds kStopTimeout = 35s;          // what ranks get to save, and some
constexpr std::chrono::seconds kToCome = 60s;               // for a process that has not started yet

const std::vector<Starter> kAny = {Starter::kAlone, Starter::kLaunch, Starter::kMpirun, Starter::kLooseMpi};
const std::vector<Starter> kLaunched = {Starter::kLaunch};
const std::vector<Starter> kByMpi = {Starter::kLaunch, Starter::kMpirun};

std::string text_of(pid_t pid, const char* file) {
  std::ifstream stream(fmt::format("/proc/{}/{}", pid, file), std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

int draw_rank(Scene& scene) {
  return static_cast<int>(scene.random() % static_cast<unsigned>(scene.drawn.num_ranks));
}

bool signal_rank(Scene& scene, int rank, int number) {
  const pid_t pid = scene.process_of(rank);
  scene.victims.push_back(rank);
  return pid > 0 && kill(pid, number) == 0;
}

std::function<bool(Scene&)> to_a_rank(int number) {
  return [number](Scene& scene) { return signal_rank(scene, draw_rank(scene), number); };
}

std::function<bool(Scene&)> to_the_launcher(int number) {
  return [number](Scene& scene) {
    if (scene.run.status()) return false;
    scene.run.signal(number);
    return true;
  };
}

// Nobody watches a launcher that has not begun anything.
bool stop_the_launcher(Scene& scene) {
  return scene.process_of(0) > 0 && to_the_launcher(SIGSTOP)(scene);
}

bool kill_two_ranks(Scene& scene) {
  const int first = draw_rank(scene), second = (first + 1) % scene.drawn.num_ranks;
  const bool hits_first = signal_rank(scene, first, SIGKILL);
  const bool hits_second = signal_rank(scene, second, SIGKILL);  // false if the first one's death has ended it
  return hits_first || hits_second;
}

// mpirun and minders come a moment after the launcher.
pid_t wait_for_process(Scene& scene, const std::function<pid_t()>& find) {
  const auto until = std::chrono::steady_clock::now() + kToCome;
  while (!scene.run.status() && std::chrono::steady_clock::now() < until) {
    if (const pid_t pid = find(); pid > 0) return pid;
    std::this_thread::sleep_for(10ms);
  }
  return -1;
}

std::function<bool(Scene&)> to_mpirun(int number) {
  return [number](Scene& scene) {
    scene.may_blame_anybody = scene.drawn.starter != Starter::kLaunch;
    const pid_t pid = wait_for_process(scene, [&] { return scene.run.mpirun(); });
    return pid > 0 && kill(pid, number) == 0;
  };
}

std::function<bool(Scene&)> to_a_minder(int number) {
  return [number](Scene& scene) {
    const int rank = draw_rank(scene);
    scene.victims.push_back(rank);
    const pid_t pid = wait_for_process(scene, [&]() -> pid_t {
      const auto minders = scene.run.processes_named("tessera-minder");
      return minders.size() == static_cast<std::size_t>(scene.drawn.num_ranks) ? minders[static_cast<std::size_t>(rank)]
                                                                               : -1;
    });
    return pid > 0 && kill(pid, number) == 0;
  };
}

// The whole job stands still for a while, as after `scontrol suspend` or Ctrl-Z.
bool pause(Scene& scene) {
  if (scene.run.status()) return false;
  const auto processes = scene.run.processes();
  for (const pid_t pid : processes) kill(pid, SIGSTOP);
  std::this_thread::sleep_for(scene.random() % 2 == 0 ? 1s : kCommLimit + 3s);
  for (const pid_t pid : processes) kill(pid, SIGCONT);
  return true;
}

bool attack(Scene& scene) {
  if (scene.run.status()) return false;
  run_shell(fmt::format(TESSERA_STRANGER " 127.0.0.1 {} 1", scene.port));
  return true;
}

// Twice, as somebody does who is in a hurry.
bool interrupt_twice(Scene& scene) {
  if (scene.run.status()) return false;
  scene.run.signal(SIGINT);
  std::this_thread::sleep_for(300ms);
  scene.run.signal(SIGINT);
  return true;
}

// As scancel does.
bool terminate_all(Scene& scene) {
  const auto processes = scene.run.processes();
  for (const pid_t pid : processes) kill(pid, SIGTERM);
  return !processes.empty();
}

std::string nothing(Scene&) {
  return "";
}

// Who is to blame for a dead rank: the launcher says how it ended, ranks on their own that it is gone, and mpirun
// speaks for itself.
std::string names_the_dead(Scene& scene) {
  const int rank = scene.victims.front();
  if (scene.drawn.starter == Starter::kLaunch) {
    // A minder that dies before it has said who it is leaves only that its rank never came.
    for (const char* const how : {"never connected", "did not start"}) {
      const std::string absent = fmt::format("tessera launch: rank {} on {} {}", rank, host_name(), how);
      if (!scene.has_met() && contains(scene.run.err(), absent)) return absent;
    }
    return fmt::format("tessera launch: rank {} on host {}", rank, host_name());
  }
  if (scene.drawn.starter == Starter::kLooseMpi && scene.has_met() && scene.drawn.num_ranks > 1) {
    return fmt::format("rank {} on {} is gone: its process ended", rank, host_name());
  }
  return "";
}

std::string names_mpirun(Scene& scene) {
  return scene.drawn.starter == Starter::kLaunch ? "tessera launch: mpirun was killed by SIGKILL" : "";
}

std::string names_the_dead_pair(Scene& scene) {
  if (scene.drawn.starter == Starter::kLaunch) return "tessera launch: rank ";
  return "";
}

// Without a launcher, ranks that are still in MPI_Init do not know each other. It ends before the first loss is
// printed.
std::string names_the_stopped(Scene& scene) {
  const bool may_be_starting = scene.drawn.starter != Starter::kLaunch && !scene.has_met();
  if (may_be_starting && contains(scene.run.err(), "MPI_Init has waited for")) {
    return "MPI_Init has waited for";
  }
  return fmt::format("rank {} on {} ", scene.victims.front(), host_name());
}

std::vector<Fault> make_faults() {
  const auto saying = [](const std::string& words) { return [words](Scene&) { return words; }; };
  return {
      {"none", Outcome::kGoesOn, kAny, 1, [](Scene&) { return true; }, nothing, 0s},
      {"kill a rank", Outcome::kEnds, kAny, 1, to_a_rank(SIGKILL), names_the_dead, kAtOnce},
      {"crash a rank", Outcome::kEnds, kAny, 1, to_a_rank(SIGSEGV), names_the_dead, kAtOnce},
      {"kill two ranks", Outcome::kEnds, kAny, 3, kill_two_ranks, names_the_dead_pair, kAtOnce},
      {"stop a rank", Outcome::kEnds, kByMpi, 2, to_a_rank(SIGSTOP), names_the_stopped, kByLimit},
      {"pause all", Outcome::kGoesOn, kAny, 1, pause, nothing, 0s},
      {"strangers", Outcome::kGoesOn, kLaunched, 2, attack, nothing, 0s},
      {"SIGTERM",
       Outcome::kStops,
       {Starter::kAlone, Starter::kLaunch},
       1,
       to_the_launcher(SIGTERM),
       nothing,
       kStopTimeout},
      {"SIGTERM to all", Outcome::kStops, kLaunched, 1, terminate_all, nothing, kStopTimeout},
      {"SIGINT twice", Outcome::kStops, {Starter::kAlone, Starter::kLaunch}, 1, interrupt_twice, nothing, kAtOnce},
      {"kill the launcher", Outcome::kEnds, kLaunched, 1, to_the_launcher(SIGKILL), nothing, kAtOnce},
      {"stop the launcher", Outcome::kEnds, kLaunched, 2, stop_the_launcher,
       saying("the launcher on " + host_name() + " has not answered for "), kByLimit},
      {"kill mpirun", Outcome::kEnds, kByMpi, 2, to_mpirun(SIGKILL), names_mpirun, kAtOnce},
      {"stop mpirun", Outcome::kGoesOn, kLaunched, 2, to_mpirun(SIGSTOP), nothing, 0s},
      {"kill a minder", Outcome::kEnds, kLaunched, 1, to_a_minder(SIGKILL), names_the_dead, kAtOnce},
      {"stop a minder", Outcome::kGoesOn, kLaunched, 1, to_a_minder(SIGSTOP), nothing, 0s},
  };
}

}  // namespace

pid_t Scene::process_of(int rank) const {
  const std::string words = tessera_binary() + '\0' + "train" + '\0';
  const auto until = std::chrono::steady_clock::now() + kToCome;
  while (!run.status() && std::chrono::steady_clock::now() < until) {
    for (const pid_t pid : run.processes_named("tessera")) {
      if (!text_of(pid, "cmdline").starts_with(words)) continue;
      const std::string environment = '\0' + text_of(pid, "environ");
      if (drawn.starter == Starter::kAlone || contains(environment, '\0' + fmt::format("RANK={}", rank) + '\0') ||
          contains(environment, '\0' + fmt::format("OMPI_COMM_WORLD_RANK={}", rank) + '\0')) {
        return pid;
      }
    }
    std::this_thread::sleep_for(10ms);
  }
  return -1;
}

bool Scene::has_met() const {
  return contains(run.out(), "'loss'");
}

const std::vector<Fault>& all_faults() {
  static const std::vector<Fault> faults = make_faults();
  return faults;
}

}  // namespace tessera::testing
