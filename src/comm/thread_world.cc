// A world whose ranks are threads of this process.
#include <fmt/format.h>

#include <exception>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "comm/thread_backend.h"
#include "comm/thread_watch.h"
#include "comm/world_impl.h"
#include "core/error.h"

namespace tessera {
namespace {

// What the threads share: one hub per group, made by the first member that asks for it.
class ThreadHubs {
 public:
  std::shared_ptr<ThreadHub> of(const std::vector<int>& ranks, const std::vector<int>& nodes) {
    std::lock_guard lock(mutex_);
    auto& hub = hubs_[ranks];
    if (!hub) hub = std::make_shared<ThreadHub>(ReduceOrder::by_node(nodes));
    if (!abort_message_.empty()) hub->abort(abort_message_);
    return hub;
  }

  void abort(const std::string& message) {
    std::lock_guard lock(mutex_);
    abort_message_ = message;
    for (auto& [ranks, hub] : hubs_) hub->abort(message);
  }

 private:
  std::mutex mutex_;
  std::map<std::vector<int>, std::shared_ptr<ThreadHub>> hubs_;
  std::string abort_message_;
};

std::unique_ptr<World> make_world(int rank, int size, const WorldOptions& options,
                                  const std::shared_ptr<ThreadHubs>& hubs, const MakeThreadBackend& make,
                                  const c10::intrusive_ptr<c10d::Store>& store,
                                  const std::shared_ptr<ThreadInquest>& inquest) {
  auto impl = std::make_unique<World::Impl>();
  std::vector<Guest> roster;
  for (int r = 0; r < size; ++r) roster.push_back({.rank = r, .world_size = size, .host = host_name()});
  impl->rank = rank;
  impl->size = size;
  impl->layout = NodeLayout::of(roster, options.ranks_per_node);
  impl->hosts.assign(static_cast<std::size_t>(size), host_name());
  impl->backend_name = "threads";
  impl->store = store;
  impl->make_backend = [self = impl.get(), hubs, make](const std::vector<int>& ranks, const std::string&) {
    return make(self->place_in(ranks), static_cast<int>(ranks.size()), hubs->of(ranks, self->nodes_of(ranks)));
  };
  WatchdogOptions watch;
  watch.rank = rank;
  watch.comm_timeout = options.comm_timeout;
  watch.end = [hubs](const Ending& ending) { hubs->abort(ending.message); };
  impl->watchdog =
      std::make_unique<Watchdog>(std::make_shared<ThreadWatchLine>(inquest, rank), impl->recorder, std::move(watch));
  return std::make_unique<World>(std::move(impl));
}

std::shared_ptr<ThreadInquest> make_inquest(int size) {
  return std::make_shared<ThreadInquest>(std::vector<std::string>(static_cast<std::size_t>(size), host_name()));
}

c10::intrusive_ptr<ThreadBackend> plain_backend(int rank, int size, std::shared_ptr<ThreadHub> hub) {
  return c10::make_intrusive<ThreadBackend>(rank, size, std::move(hub));
}

}  // namespace

void run_thread_ranks(int num_ranks, const WorldOptions& options, const std::function<void(World&)>& body) {
  run_thread_ranks(num_ranks, options, plain_backend, body);
}

void run_thread_ranks(int num_ranks, const WorldOptions& options, const MakeThreadBackend& make,
                      const std::function<void(World&)>& body) {
  auto hubs = std::make_shared<ThreadHubs>();
  const c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::HashStore>();
  const auto inquest = make_inquest(num_ranks);
  std::mutex mutex;
  std::exception_ptr first_error;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      std::unique_ptr<World> world;
      try {
        world = make_world(rank, num_ranks, options, hubs, make, store, inquest);
        body(*world);
        world->all().barrier("end of the thread world")->wait();
      } catch (const std::exception& error) {
        {
          std::lock_guard lock(mutex);
          if (!first_error) first_error = std::current_exception();
        }
        hubs->abort(fmt::format("rank {} failed: {}", rank, error.what()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first_error) std::rethrow_exception(first_error);
}

std::unique_ptr<World> make_single_world(const WorldOptions& options) {
  return make_world(0, 1, options, std::make_shared<ThreadHubs>(), plain_backend,
                    c10::make_intrusive<c10d::HashStore>(), make_inquest(1));
}

}  // namespace tessera
