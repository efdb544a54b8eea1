// A world whose ranks are processes: how they find and meet each other, and which backend they use.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <iostream>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "comm/announce.h"
#include "comm/failure.h"
#include "comm/gpu_support.h"
#include "comm/mpi_runtime.h"
#include "comm/rank_env.h"
#include "comm/world_impl.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"

namespace tessera {
namespace {

using std::chrono::milliseconds;

const std::string kLeftKey = "tessera/left";        // how many ranks have left normally
const std::string kStatusKey = "tessera/returned";  // how many have returned a status other than 0

std::string choose_backend(const WorldOptions& options, const RankEnv& self) {
  if (options.backend == "mpi") return "mpi";
  if (options.backend != "nccl" && options.backend != "auto") {
    throw UsageError(fmt::format("backend={}: expected auto, mpi or nccl", options.backend));
  }
  if (options.backend == "nccl" && options.device == "cpu") {
    throw UsageError("backend=nccl with device=cpu: NCCL moves GPU tensors only; use backend=mpi");
  }
  const bool has_gpu = options.device != "cpu" && gpu_support() != nullptr;
  if (options.backend == "nccl") {
    if (!has_gpu) throw UsageError(fmt::format("backend=nccl needs a GPU: {}", no_gpu_reason()));
    return "nccl";
  }
  // NCCL refuses two ranks on one GPU.
  if (has_gpu && gpu_support()->num_gpus() >= self.local_size.value_or(1)) return "nccl";
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
  const MpiRuntime& mpi = MpiRuntime::instance(timeout);
  if (mpi.size() == self.world_size && mpi.rank() == self.rank) return;
  if (mpi.size() == 1) {
    const char* advice = self.launched
                             ? "`tessera launch` started it without mpirun (--starter fork, or several nodes): use "
                               "--starter mpirun on one host, srun --mpi=pmix or mpirun on several"
                             : "start the ranks with `tessera launch`, mpirun, or srun --mpi=pmix";
    throw rendezvous_error(fmt::format("rank {} of {} was started without MPI, which CPU ranks need to communicate: {}",
                                       self.rank, self.world_size, advice));
  }
  throw rendezvous_error(fmt::format("this is rank {} of {} according to {}, but rank {} of {} according to MPI",
                                     self.rank, self.world_size, self.source, mpi.rank(), mpi.size()));
}

// Where the ranks meet. Opens the lobby on rank 0 if no launcher serves it.
Address find_lobby(const RankEnv& self, const std::string& backend, const WorldOptions& options,
                   std::unique_ptr<LobbyServer>& lobby) {
  const auto open = [&](int port) {
    lobby = std::make_unique<LobbyServer>(port, self.world_size, options.start_timeout, "rank", self.job_id);
    return lobby->port();
  };
  if (self.world_size == 1 && !self.launched) return {"127.0.0.1", open(0)};
  if (self.launched || backend != "mpi") {
    if (!self.master_addr || !self.master_port) {
      throw rendezvous_error(fmt::format("{} is not set: rank 0's host and port must be known to all ranks",
                                         self.master_addr ? "MASTER_PORT" : "MASTER_ADDR"));
    }
    if (!self.launched && self.rank == 0) open(*self.master_port);
    return {*self.master_addr, *self.master_port};
  }
  // MPI carries the address, so the ranks need not agree on a port. If rank 0 cannot open the lobby, all ranks fail.
  Json word;
  if (self.rank == 0) {
    try {
      const bool port_is_wanted = self.source != "Slurm" && self.master_port.has_value();
      const bool one_host = self.local_size == self.world_size;
      word["port"] = open(port_is_wanted ? *self.master_port : 0);
      word["host"] = self.master_addr.value_or(one_host ? "127.0.0.1" : host_name());
    } catch (const Error& error) {
      word["why"] = error.what();
    }
  }
  word = parse_json(MpiRuntime::instance().broadcast_text(word.dump(), options.start_timeout), "rank 0's word");
  if (word.contains("why")) throw rendezvous_error("rank 0: " + word.at("why").get<std::string>());
  return {word.at("host"), word.at("port")};
}

Guest introduce(const RankEnv& self, const std::string& backend, const WorldOptions& options) {
  Guest guest;
  guest.rank = self.rank;
  guest.world_size = self.world_size;
  guest.host = host_name();
  guest.pid = getpid();
  guest.job_id = self.job_id;
  guest.version = version_text();
  guest.settings = options.settings;
  guest.settings["backend"] = backend;
  guest.settings["comm_timeout"] = fmt::format("{} ms", options.comm_timeout.count());
  guest.settings["ranks_per_node"] = std::to_string(options.ranks_per_node);
  guest.node_rank = self.node_rank.value_or(-1);
  return guest;
}

// Ends this process because the run cannot continue. No destructor may run: they would wait for ranks that never come.
[[noreturn]] void end_process(int rank, const std::string& message, int status, bool is_consequence, bool speaks) {
  record_failure({.rank = rank,
                  .host = host_name(),
                  .message = message,
                  .exit_status = status,
                  .time_ms = 0,
                  .is_consequence = is_consequence});
  if (speaks) {
    log_error("{}", message);
  } else {
    // mpirun or srun must not kill the rank that reports because we left first.
    std::this_thread::sleep_for(milliseconds(500));
  }
  std::cout.flush();
  std::fflush(nullptr);
  _exit(status);
}

World::Impl::BackendMaker mpi_maker(const World::Impl* self) {
  return [self](const std::vector<int>& ranks, const std::string&) -> c10::intrusive_ptr<c10d::Backend> {
    std::size_t hash = 17;  // tells apart the messages of two groups that are made at the same time
    for (int rank : ranks) hash = hash * 31 + static_cast<std::size_t>(rank);
    const MPI_Comm communicator = MpiRuntime::instance().make_communicator(ranks, static_cast<int>(hash % 32749));
    auto lane = std::make_shared<MpiLane>(communicator, self->place_in(ranks), static_cast<int>(ranks.size()),
                                          ReduceOrder::by_node(self->nodes_of(ranks)));
    return c10::make_intrusive<MpiBackend>(lane->rank, lane->size, lane);
  };
}

World::Impl::BackendMaker nccl_maker(const World::Impl* self, milliseconds timeout) {
  return [self, timeout](const std::vector<int>& ranks, const std::string& name) {
    auto store = c10::make_intrusive<c10d::PrefixStore>("nccl/" + name, self->store);
    return gpu_support()->make_nccl(store, self->place_in(ranks), static_cast<int>(ranks.size()), self->device.index(),
                                    timeout);
  };
}

// Finishes operations that were not waited for first. The rank that holds the store stays until all have left, since
// the others' watchdogs need it; what this rank did last stays in the store. The watchdog is active throughout.
void leave_together(World::Impl& self) {
  while (!self.recorder->is_idle()) std::this_thread::sleep_for(milliseconds(1));
  for (auto& [ranks, slot] : self.groups) {
    if (slot.group) slot.group->backend().shutdown();
  }
  FlightEntry entry;
  entry.group = "world";
  entry.operation = "leave_world";
  self.recorder->finish(self.recorder->begin(std::move(entry)));
  self.watchdog->publish_last_words();
  self.store->add(kLeftKey, 1);
  while (self.lobby && self.store->add(kLeftKey, 0) < self.size) std::this_thread::sleep_for(milliseconds(5));
  self.watchdog.reset();
  if (self.backend_name == "mpi") MpiRuntime::instance().close_world();
}

void start_watchdog(World::Impl& self, const WorldOptions& options) {
  WatchdogOptions watch;
  watch.rank = self.rank;
  watch.world_size = self.size;
  watch.hosts = self.hosts;
  watch.comm_timeout = options.comm_timeout;
  watch.end = [rank = self.rank](const std::string& message, int status, bool is_consequence, bool speaks) {
    end_process(rank, message, status, is_consequence, speaks);
  };
  self.watchdog = std::make_unique<Watchdog>(self.store->clone(), self.recorder, std::move(watch));
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
  const Environment environment = Environment::of_process();
  const RankEnv self = discover_rank(environment);
  configure_log(environment.find("TESSERA_LOG").value_or("info"), self.rank);
  const std::string backend = choose_backend(options, self);
  choose_device(options, backend, self.local_rank.value_or(0));  // refuses a missing device before the ranks meet
  if (backend == "single") return make_lone_world(options);
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
  const Address address = find_lobby(self, backend, options, impl->lobby);
  announce_start(options, self.rank, address);
  Meeting meeting = join_lobby(address.host, address.port, introduce(self, backend, options), options.start_timeout);
  if (backend == "mpi") {
    check_mpi_agrees(self, options.start_timeout);
    MpiRuntime::instance().open_world();
  }
  impl->store = meeting.store;
  impl->layout = NodeLayout::of(meeting.roster, options.ranks_per_node);
  for (const Guest& guest : meeting.roster) impl->hosts.push_back(guest.host);
  const int local_rank = self.local_rank.value_or(impl->layout.local_rank_of_rank[static_cast<std::size_t>(self.rank)]);
  impl->device = choose_device(options, backend, local_rank);
  impl->make_backend = backend == "mpi" ? mpi_maker(impl.get()) : nccl_maker(impl.get(), options.comm_timeout);
  impl->leave = [raw = impl.get()] { leave_together(*raw); };
  start_watchdog(*impl, options);
  auto world = std::make_unique<World>(std::move(impl));
  // Make all three now, in the same order on every rank: groups made later in different orders would wait for each
  // other.
  world->all();
  world->node();
  world->across();
  world->all().barrier("start")->wait();
  announce_world(options, *world, address);
  return world;
}

}  // namespace tessera
