// A world whose ranks are processes: how they find and meet each other, and which backend they use.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <future>
#include <iostream>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "comm/failure.h"
#include "comm/gpu_support.h"
#include "comm/meeting/handshake.h"
#include "comm/meeting/store.h"
#include "comm/mpi_support.h"
#include "comm/rank_env.h"
#include "comm/world_impl.h"
#include "core/error.h"
#include "core/host.h"
#include "core/log.h"

namespace tessera {
namespace {

using std::chrono::milliseconds;

const std::string kStatusKey = "tessera/returned";  // how many ranks have returned a status other than 0
constexpr std::chrono::seconds kStoreTimeout{10};   // at least

std::string choose_backend(const WorldOptions& options, const RankEnv& self) {
  if (options.backend == "mpi") return "mpi";
  if (options.backend != "nccl" && options.backend != "auto") {
    throw UsageError(fmt::format("backend={}: expected auto, mpi or nccl", options.backend));
  }
  if (options.backend == "nccl" && options.device == "cpu") {
    throw UsageError("backend=nccl with device=cpu: NCCL moves GPU tensors only; use backend=mpi");
  }
  if (options.device == "auto" && gpus_are_unfit()) {
    throw UsageError(fmt::format("{}; or give --device cpu", no_gpu_reason()));
  }
  const bool has_gpu = options.device != "cpu" && gpu_support() != nullptr;
  if (options.backend == "nccl") {
    if (!has_gpu) throw UsageError(fmt::format("backend=nccl needs a GPU: {}", no_gpu_reason()));
    return "nccl";
  }
  // NCCL refuses two ranks on one GPU.
  const int num_gpus = has_gpu ? gpu_support()->num_gpus() : 0, num_here = self.local_size.value_or(1);
  if (has_gpu && num_gpus >= num_here) return "nccl";
  if (has_gpu && options.device == "auto" && self.rank == 0) {
    log_warn(
        "the {} ranks of this host see {} GPU{} and use none: start one rank per GPU, or give --device cuda "
        "--share_gpus",
        num_here, num_gpus, num_gpus == 1 ? "" : "s");
  }
  return self.world_size == 1 ? "single" : "mpi";
}

at::Device choose_device(const WorldOptions& options, const std::string& backend, int local_rank) {
  const bool wants_gpu = options.device == "cuda" || (options.device == "auto" && backend == "nccl");
  if (options.device != "auto" && options.device != "cpu" && options.device != "cuda") {
    throw UsageError(fmt::format("device={}: expected auto, cpu or cuda", options.device));
  }
  if (!wants_gpu) return at::kCPU;
  if (gpu_support() == nullptr) throw UsageError(fmt::format("device=cuda needs a GPU: {}", no_gpu_reason()));
  const int index = local_rank % gpu_support()->num_gpus();
  gpu_support()->set_device(index);
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index));
}

void check_mpi_agrees(const RankEnv& self, milliseconds timeout) {
  const MpiSupport& mpi = required_mpi();
  mpi.start(timeout);
  if (mpi.size() == self.world_size && mpi.rank() == self.rank) return;
  if (mpi.size() == 1) {
    const char* advice = self.launched
                             ? "`tessera launch` started it without mpirun (--starter fork, or several nodes): use "
                               "--starter mpirun on one host, srun --mpi=pmix or mpirun on several"
                             : "start the ranks with `tessera launch`, mpirun, or srun --mpi=pmix";
    throw rendezvous_error(fmt::format(
        "rank {} of {} was started without MPI, which CPU ranks need to communicate, or by another one than "
        "{} ({}): {}",
        self.rank, self.world_size, mpi.version(), mpi.library().string(), advice));
  }
  throw rendezvous_error(fmt::format("this is rank {} of {} according to {}, but rank {} of {} according to MPI",
                                     self.rank, self.world_size, self.source, mpi.rank(), mpi.size()));
}

Peer introduce(const RankEnv& self, const std::string& backend, const WorldOptions& options) {
  Peer peer{.rank = self.rank,
            .world_size = self.world_size,
            .host = host_name(),
            .pid = getpid(),
            .version = version_text(),
            .settings = options.settings,
            .node_rank = self.node_rank.value_or(-1)};
  peer.settings["backend"] = backend;
  peer.settings["comm_timeout"] = fmt::format("{} ms", options.comm_timeout.count());
  peer.settings["ranks_per_node"] = std::to_string(options.ranks_per_node);
  return peer;
}

// The last words of a rank whose run has failed: for the user, and for the launcher.
void say_last_words(int rank, const Ending& ending) {
  // All ranks name the same cause; one of them also shows where each rank stands.
  log_error("{}", ending.speaks ? ending.message : ending.message.substr(0, ending.message.find('\n')));
  record_failure({.rank = rank,
                  .host = host_name(),
                  .message = ending.message,
                  .exit_status = ending.status,
                  .is_consequence = ending.is_consequence,
                  .is_finding = !ending.is_own_failure});
  std::cout.flush();
  std::fflush(nullptr);
}

std::filesystem::path program_of(const std::filesystem::path& process) {
  std::error_code ignored;
  return std::filesystem::read_symlink(process / "exe", ignored);
}

// The run has failed: kills the ranks of this host that are stopped (SIGSTOP) and cannot end themselves. mpirun and
// `srun -K1` do so as well; plain srun would wait for them until the job's time limit.
void kill_stopped_peers(const std::vector<Peer>& roster) noexcept {
  try {
    const std::filesystem::path own_program = program_of("/proc/self");
    for (const Peer& peer : roster) {
      if (peer.host != host_name() || peer.pid == getpid() || peer.pid <= 1) continue;
      // In a container the number may belong to another process: this one runs the same program and is stopped.
      const auto pid = static_cast<pid_t>(peer.pid);
      const bool is_this_program = !own_program.empty() && program_of(fmt::format("/proc/{}", pid)) == own_program;
      if (is_this_program && process_state(pid) == 'T') kill(pid, SIGKILL);
    }
  } catch (const std::exception&) {  // out of memory: whoever started the ranks ends them
  }
}

// Ends this process because the run cannot continue. No destructor may run: they would wait for ranks that never come.
// A disk or a pipe that hangs does not keep the process either: its last words have a time limit.
// `peers`: those to take along if they are stopped.
[[noreturn]] void end_process(int rank, const Ending& ending, const std::vector<Peer>& peers) {
  auto said = std::make_shared<std::promise<void>>();
  std::thread([=, &peers] {
    say_last_words(rank, ending);
    kill_stopped_peers(peers);
    said->set_value();
  }).detach();
  said->get_future().wait_for(std::chrono::seconds(1));
  // mpirun or srun must not kill the rank that reports because we left first.
  if (!ending.speaks) std::this_thread::sleep_for(milliseconds(500));
  _exit(ending.status);
}

World::Impl::BackendMaker backend_maker(const World::Impl& self, milliseconds nccl_timeout) {
  return [&self, nccl_timeout](const std::vector<int>& ranks, const std::string& name) {
    const int place = self.place_in(ranks);
    if (self.backend_name == "mpi") {
      return required_mpi().make_backend(ranks, place, ReduceOrder::by_node(self.nodes_of(ranks)));
    }
    return gpu_support()->make_nccl(c10::make_intrusive<c10d::PrefixStore>("nccl/" + name, self.store), place,
                                    static_cast<int>(ranks.size()), self.device.index(), nccl_timeout);
  };
}

// An operation of all ranks that is not a collective of a group, for the watchdog.
std::uint64_t begin_operation(World::Impl& self, const char* operation, milliseconds limit = {}) {
  FlightEntry entry{.group = "world", .operation = operation, .limit = limit};
  for (int rank = 0; rank < self.size; ++rank) entry.ranks.push_back(rank);
  return self.recorder->begin(std::move(entry));
}

// Finishes operations that were not waited for first. The rank that holds the store stays until all have left, since
// the others' watchdogs need it; what this rank did last stays there. The watchdog is active throughout.
void leave_together(World::Impl& self, bool is_last_world) {
  while (!self.recorder->is_idle()) std::this_thread::sleep_for(milliseconds(1));
  for (auto& [ranks, slot] : self.groups) {
    if (slot.group) slot.group->backend().shutdown();
  }
  const std::uint64_t leaving = begin_operation(self, "leave_world");
  if (self.backend_name == "mpi") {
    required_mpi().close_world();
    // MPI_Finalize waits for all ranks: within sight of the watchdog, where it can be.
    if (is_last_world) required_mpi().end();
  }
  if (!self.place) self.recorder->finish(leaving);
  self.client->publish(self.recorder->dump());
  self.client->say_goodbye();
  while (self.place && !self.place->all_have_left()) std::this_thread::sleep_for(milliseconds(5));
  self.recorder->finish(leaving);
  self.watchdog.reset();
}

void start_watchdog(World::Impl& self, const WorldOptions& options, bool by_srun) {
  // mpirun and our launcher end stopped ranks themselves, once they know why the others ended.
  const auto end = [&self, by_srun](const Ending& ending) {
    end_process(self.rank, ending, by_srun ? self.client->roster() : std::vector<Peer>{});
  };
  self.watchdog = std::make_unique<Watchdog>(
      self.client, self.recorder, WatchdogOptions{.rank = self.rank, .comm_timeout = options.comm_timeout, .end = end});
}

// MPI has no time limits: where the ranks have met before, the watchdog says who never reached MPI_Init.
void start_mpi(World::Impl& self, const RankEnv& env, const WorldOptions& options) {
  constexpr std::chrono::seconds kWatchdogFirst{10};
  const std::uint64_t starting = begin_operation(self, "MPI_Init", options.start_timeout);
  check_mpi_agrees(env, options.start_timeout + kWatchdogFirst);
  self.recorder->finish(starting);
  // A launched rank finalizes MPI within sight of the watchdog, which speaks first.
  required_mpi().open_world(options.comm_timeout + (env.launched ? kWatchdogFirst : std::chrono::seconds(0)));
}

// The ranks have met: if one cannot go on from there, all learn why.
template <typename Call>
void or_tell_all(World::Impl& self, Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    self.watchdog->raise(message_of(error), status_of(error));
  }
}

std::unique_ptr<World> make_lone_world(const WorldOptions& options) {
  const Address alone{host_name(), 0};
  announce_start(options, 0, alone);
  auto world = make_single_world(options);
  announce_world(options, *world, alone);
  return world;
}

}  // namespace

void World::Impl::leave_with_status(int status) {
  store->add(kStatusKey, 1);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (store->add(kStatusKey, 0) < size) {
    if (std::chrono::steady_clock::now() > deadline) {
      watchdog->raise(fmt::format("the program returned {} while other ranks continue", status), status);
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
}

std::unique_ptr<World> World::create(const WorldOptions& options) {
  take_secret_of_environment();  // first of all: nobody else need see it
  const Environment environment = Environment::of_process();
  const RankEnv self = discover_rank(environment);
  configure_log(environment.find("TESSERA_LOG").value_or("info"), self.rank);
  const std::string backend = choose_backend(options, self);
  choose_device(options, backend, self.local_rank.value_or(0));  // a missing device or MPI: before the ranks meet
  if (backend == "single") return make_lone_world(options);
  if (backend == "mpi") required_mpi();
  static std::atomic<int> num_worlds{0};
  if (num_worlds++ > 0 && self.launched) {
    throw UsageError(
        "this process creates a second World, but `tessera launch` supports one per process; keep the first");
  }
  // With a launcher the ranks meet first, so that a missing rank is named; without one, MPI must tell them where.
  if (backend == "mpi" && !self.launched) check_mpi_agrees(self, options.start_timeout);
  auto impl = std::make_unique<Impl>();
  impl->rank = self.rank;
  impl->size = self.world_size;
  impl->backend_name = backend;
  impl->is_process = true;
  const MeetingPoint point =
      find_meeting_point(self, backend == "mpi", options.start_timeout, environment, impl->place);
  const Address& address = point.address;
  announce_start(options, self.rank, address);
  impl->client =
      std::make_shared<MeetingClient>(JoinOptions{.host = impl->place ? impl->place->address() : address.host,
                                                  .port = address.port,
                                                  .key = point.key,
                                                  .self = introduce(self, backend, options),
                                                  .timeout = options.start_timeout,
                                                  .holder = self.launched ? "the launcher" : "rank 0"});
  impl->store =
      c10::make_intrusive<MeetingStore>(impl->client, std::max<milliseconds>(options.start_timeout, kStoreTimeout));
  impl->layout = NodeLayout::of(impl->client->roster(), options.ranks_per_node);
  for (const Peer& peer : impl->client->roster()) impl->hosts.push_back(peer.host);
  start_watchdog(*impl, options, self.by_srun);
  or_tell_all(*impl, [&] {
    if (backend == "mpi") start_mpi(*impl, self, options);
    const auto local_rank_by_host = impl->layout.local_rank_of_rank[static_cast<std::size_t>(self.rank)];
    impl->device = choose_device(options, backend, self.local_rank.value_or(local_rank_by_host));
    if (impl->device.is_cuda() && !options.share_gpus) {
      const GpuInfo gpu = gpu_support()->info(impl->device.index());
      refuse_shared_gpus(*impl->store, self.rank, impl->hosts, fmt::format("{}, {}", gpu.name, gpu.uuid));
    }
  });
  impl->make_backend = backend_maker(*impl, options.comm_timeout);
  impl->leave = [raw = impl.get(), is_last = self.launched] { leave_together(*raw, is_last); };
  Impl& started = *impl;
  auto world = std::make_unique<World>(std::move(impl));
  or_tell_all(started, [&] {
    // Make all three now, in the same order on every rank: groups made later in different orders would wait for each
    // other.
    world->all();
    world->node();
    world->across();
    world->all().barrier("start")->wait();
  });
  announce_world(options, *world, address);
  return world;
}

}  // namespace tessera
