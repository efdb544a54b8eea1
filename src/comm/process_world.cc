// A world whose ranks are processes: finding them, meeting them, and the backend they talk by.
#include <fmt/format.h>
#include <unistd.h>

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

Error rendezvous_error(const std::string& message) {
  return Error(message, ExitStatus::kRendezvous);
}

std::string choose_backend(const WorldOptions& options, const RankEnv& self) {
  if (options.backend == "mpi") return "mpi";
  if (options.backend != "nccl" && options.backend != "auto") {
    throw UsageError(fmt::format("backend={}: expected auto, mpi or nccl", options.backend));
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

void check_mpi_agrees(const RankEnv& self) {
  const MpiRuntime& mpi = MpiRuntime::instance();
  if (mpi.size() == self.world_size && mpi.rank() == self.rank) return;
  if (mpi.size() == 1) {
    throw rendezvous_error(
        fmt::format("rank {} of {} was started without MPI, which CPU ranks talk by: start them with "
                    "`tessera launch`, mpirun, or srun --mpi=pmix",
                    self.rank, self.world_size));
  }
  throw rendezvous_error(fmt::format("this is rank {} of {} by {}, but rank {} of {} by MPI", self.rank,
                                     self.world_size, self.source, mpi.rank(), mpi.size()));
}

// Where the ranks meet. Opens the lobby on rank 0 where no launcher serves it.
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
  // MPI carries the address, so that no port need be agreed on. A failure to open it is everybody's.
  std::string text, failure;
  if (self.rank == 0) {
    try {
      const bool port_is_wanted = self.source != "Slurm" && self.master_port.has_value();
      text = fmt::format("{} {}", self.master_addr.value_or(host_name()), open(port_is_wanted ? *self.master_port : 0));
    } catch (const Error& error) {
      text = failure = error.what();
    }
  }
  text = MpiRuntime::instance().broadcast_text(text);
  const auto words = split(text, ' ');
  if (!failure.empty() || words.size() != 2) throw rendezvous_error("rank 0: " + text);
  return {words[0], static_cast<int>(*parse_integer(words[1]))};
}

Guest introduce(const RankEnv& self, const std::string& backend, const WorldOptions& options) {
  Guest guest;
  guest.rank = self.rank;
  guest.world_size = self.world_size;
  guest.host = host_name();
  guest.pid = getpid();
  guest.job_id = self.job_id;
  guest.restart_count = self.restart_count;
  guest.version = version_text();
  guest.settings = options.settings;
  guest.settings["backend"] = backend;
  guest.settings["comm_timeout"] = fmt::format("{} ms", options.comm_timeout.count());
  guest.settings["ranks_per_node"] = std::to_string(options.ranks_per_node);
  guest.local_rank = self.local_rank.value_or(-1);
  guest.node_rank = self.node_rank.value_or(-1);
  return guest;
}

// Ends this process because the run cannot go on. No destructor may run: they would wait for ranks that never come.
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
    // Whoever speaks must not be killed by mpirun or srun because we left first.
    std::this_thread::sleep_for(milliseconds(500));
  }
  std::cout.flush();
  std::fflush(nullptr);
  _exit(status);
}

World::Impl::BackendMaker mpi_maker(const World::Impl* self) {
  return [self](const std::vector<int>& ranks, const std::string&) -> c10::intrusive_ptr<c10d::Backend> {
    auto lane = std::make_shared<MpiLane>();
    lane->rank = self->place_in(ranks);
    lane->size = static_cast<int>(ranks.size());
    lane->order = ReduceOrder::by_node(self->nodes_of(ranks));
    std::size_t hash = 17;  // members of overlapping groups may make them in another order: tags keep them apart
    for (int rank : ranks) hash = hash * 31 + static_cast<std::size_t>(rank);
    lane->communicator = MpiRuntime::instance().make_communicator(ranks, static_cast<int>(hash % 32749));
    return c10::make_intrusive<MpiBackend>(lane->rank, lane->size, lane);
  };
}

World::Impl::BackendMaker nccl_maker(const World::Impl* self, milliseconds timeout) {
  return [self, timeout](const std::vector<int>& ranks, const std::string& name) {
    auto store = c10::make_intrusive<c10d::PrefixStore>("nccl/" + name, self->store);
    return gpu_support()->make_nccl(store, self->place_in(ranks), static_cast<int>(ranks.size()),
                                    self->device.index(), timeout);
  };
}

// Whoever holds the store stays until all have left: the others' watchdogs need it. What this rank did last stays in it.
void leave_together(World::Impl& self) {
  for (auto& [ranks, group] : self.groups) group->backend().shutdown();
  FlightEntry entry;
  entry.group = "world";
  entry.operation = "leave_world";
  self.recorder->finish(self.recorder->begin(std::move(entry)));
  self.watchdog->publish_last_words();
  const std::string key = "tessera/left";
  self.store->add(key, 1);
  while (self.lobby && self.store->add(key, 0) < self.size) std::this_thread::sleep_for(milliseconds(5));
  self.watchdog.reset();
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

}  // namespace

std::unique_ptr<World> World::create(const WorldOptions& options) {
  const Environment environment = Environment::of_process();
  const RankEnv self = discover_rank(environment);
  configure_log(environment.find("TESSERA_LOG").value_or("info"), self.rank);
  const std::string backend = choose_backend(options, self);
  if (backend == "single") {
    const Address alone{host_name(), 0};
    announce_start(options, 0, alone);
    auto world = make_single_world(options);
    announce_world(options, *world, alone);
    return world;
  }
  if (backend == "mpi") check_mpi_agrees(self);

  auto impl = std::make_unique<Impl>();
  impl->rank = self.rank;
  impl->size = self.world_size;
  impl->backend_name = backend;
  const Address address = find_lobby(self, backend, options, impl->lobby);
  announce_start(options, self.rank, address);
  Meeting meeting = join_lobby(address.host, address.port, introduce(self, backend, options), options.start_timeout);
  impl->store = meeting.store;
  impl->layout = NodeLayout::of(meeting.roster, options.ranks_per_node);
  for (const Guest& guest : meeting.roster) impl->hosts.push_back(guest.host);
  const int local_rank = self.local_rank.value_or(impl->layout.local_rank_of_rank[static_cast<std::size_t>(self.rank)]);
  impl->device = choose_device(options, backend, local_rank);
  impl->make_backend = backend == "mpi" ? mpi_maker(impl.get()) : nccl_maker(impl.get(), options.comm_timeout);
  impl->leave = [raw = impl.get()] { leave_together(*raw); };
  start_watchdog(*impl, options);
  auto world = std::make_unique<World>(std::move(impl));
  world->all().barrier("start")->wait();
  announce_world(options, *world, address);
  return world;
}

}  // namespace tessera
