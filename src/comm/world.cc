#include "tessera/world.h"

#include <ATen/record_function.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "comm/failure.h"
#include "comm/flight_recorder.h"
#include "comm/host_backend.h"
#include "comm/ordered_reduce.h"
#include "comm/world_impl.h"
#include "core/error.h"
#include "core/text.h"

namespace tessera {

NodeLayout NodeLayout::of(const std::vector<Peer>& roster, int ranks_per_node) {
  NodeLayout layout;
  std::map<std::string, int> node_of_name;  // in order of the lowest rank
  std::map<int, int> num_on_node;
  const bool told = std::ranges::all_of(roster, [](const Peer& g) { return g.node_rank >= 0; });
  for (const Peer& peer : roster) {
    int node = ranks_per_node > 0 ? peer.rank / ranks_per_node : peer.node_rank;
    if (ranks_per_node <= 0 && !told) {
      node = node_of_name.emplace(peer.host, static_cast<int>(node_of_name.size())).first->second;
    }
    layout.node_of_rank.push_back(node);
    layout.local_rank_of_rank.push_back(num_on_node[node]++);
  }
  layout.num_nodes = static_cast<int>(num_on_node.size());
  return layout;
}

Group& World::Impl::group(const std::vector<int>& ranks) {
  Slot* slot;
  {
    std::lock_guard lock(mutex);
    slot = &groups[ranks];
  }
  std::lock_guard lock(slot->mutex);
  if (slot->group) return *slot->group;
  // Making it may wait for its other members: the watchdog sees that too.
  const std::string name = name_of_group(ranks);
  const std::uint64_t id = recorder->begin({.group = name, .ranks = ranks, .operation = "make_group"});
  try {
    slot->group = std::make_unique<Group>(name, ranks, make_backend(ranks, name), recorder);
    recorder->finish(id);
  } catch (const std::exception& error) {
    recorder->finish(id, message_of(error));
    throw;
  }
  return *slot->group;
}

std::string World::Impl::name_of_group(const std::vector<int>& ranks) const {
  if (static_cast<int>(ranks.size()) == size && std::is_sorted(ranks.begin(), ranks.end())) return "world";
  for (int node = 0; node < layout.num_nodes; ++node) {
    if (ranks == ranks_of_node(node)) return fmt::format("node {}", node);
  }
  const int local_rank = layout.local_rank_of_rank[static_cast<std::size_t>(ranks.front())];
  if (ranks == ranks_across(local_rank)) return fmt::format("across {}", local_rank);
  return fmt::format("ranks {}", fmt::join(ranks, ","));
}

std::vector<int> World::Impl::ranks_of_node(int node) const {
  std::vector<int> ranks;
  for (int r = 0; r < size; ++r) {
    if (layout.node_of_rank[static_cast<std::size_t>(r)] == node) ranks.push_back(r);
  }
  return ranks;
}

std::vector<int> World::Impl::ranks_across(int local_rank) const {
  std::vector<int> ranks;
  for (int r = 0; r < size; ++r) {
    if (layout.local_rank_of_rank[static_cast<std::size_t>(r)] == local_rank) ranks.push_back(r);
  }
  std::ranges::sort(ranks, {}, [&](int r) { return layout.node_of_rank[static_cast<std::size_t>(r)]; });
  return ranks;
}

std::vector<int> World::Impl::nodes_of(const std::vector<int>& ranks) const {
  std::vector<int> nodes;
  for (int r : ranks) nodes.push_back(layout.node_of_rank[static_cast<std::size_t>(r)]);
  return nodes;
}

int World::Impl::place_in(const std::vector<int>& ranks) const {
  return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
}

World::World(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

World::~World() {
  // While an exception unwinds, the other ranks are not finishing: do not wait for them.
  if (std::uncaught_exceptions() > 0 || !impl_->leave) return;
  try {
    impl_->leave();
  } catch (const std::exception& error) {
    std::cerr << "tessera: leaving the world failed: " << message_of(error) << '\n';
  }
}

int World::rank() const {
  return impl_->rank;
}
int World::size() const {
  return impl_->size;
}
int World::local_rank() const {
  return impl_->layout.local_rank_of_rank[static_cast<std::size_t>(impl_->rank)];
}
int World::node_rank() const {
  return impl_->layout.node_of_rank[static_cast<std::size_t>(impl_->rank)];
}
int World::num_nodes() const {
  return impl_->layout.num_nodes;
}
const std::vector<int>& World::node_of_rank() const {
  return impl_->layout.node_of_rank;
}
const std::vector<std::string>& World::hosts() const {
  return impl_->hosts;
}
const std::string& World::backend_name() const {
  return impl_->backend_name;
}
at::Device World::device() const {
  return impl_->device;
}
FlightRecorder& World::recorder() {
  return *impl_->recorder;
}

Group& World::all() {
  std::vector<int> ranks;
  for (int r = 0; r < impl_->size; ++r) ranks.push_back(r);
  return impl_->group(ranks);
}

Group& World::node() {
  if (num_nodes() == 1) return all();
  return impl_->group(impl_->ranks_of_node(node_rank()));
}

Group& World::across() {
  return impl_->group(impl_->ranks_across(local_rank()));
}

Group& World::group(const std::vector<int>& ranks) {
  std::vector<int> sorted = ranks;
  std::ranges::sort(sorted);
  const bool distinct = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  if (ranks.empty() || !distinct || sorted.front() < 0 || sorted.back() >= size()) {
    throw Error(fmt::format("a group needs distinct ranks from 0 to {}, got [{}]", size() - 1, fmt::join(ranks, ", ")));
  }
  if (!std::binary_search(sorted.begin(), sorted.end(), rank())) {
    throw Error(fmt::format("rank {} is not in the group [{}]: only its members can create it", rank(),
                            fmt::join(ranks, ", ")));
  }
  return impl_->group(ranks);
}

void World::fail(const std::string& message, int status) {
  if (impl_->watchdog) impl_->watchdog->raise(message, status);
  throw Error(message, static_cast<ExitStatus>(status));
}

int run_rank(const WorldOptions& options, const std::function<int(World&)>& body) {
  std::unique_ptr<World> world;
  const auto is_process = [&] { return world && world->impl_->is_process; };
  try {
    world = World::create(options);
    const int status = body(*world);
    if (status != 0 && is_process()) world->impl_->leave_with_status(status);
    world.reset();
    return status;
  } catch (const std::exception& error) {
    if (is_process()) world->fail(message_of(error), status_of(error));  // does not return
    return report_failure(error);
  } catch (...) {
    const std::string message = "an exception that is not a std::exception";
    const int status = static_cast<int>(ExitStatus::kFailure);
    if (is_process()) world->fail(message, status);
    report_failure(message, status);
    return status;
  }
}

Group::Group(std::string name, std::vector<int> ranks, c10::intrusive_ptr<c10d::Backend> backend,
             std::shared_ptr<FlightRecorder> recorder)
    : name_(std::move(name)), ranks_(std::move(ranks)), backend_(std::move(backend)), recorder_(std::move(recorder)) {}

FlightEntry Group::entry(const char* operation, std::string_view unit, const at::Tensor& tensor,
                         std::string detail) const {
  check_tensor(operation, tensor);
  return {.group = name_,
          .ranks = ranks_,
          .operation = operation,
          .unit = std::string(unit),
          .detail = fmt::format("{}{}", c10::toString(tensor.scalar_type()), detail.empty() ? "" : ' ' + detail),
          .bytes = static_cast<std::int64_t>(tensor.nbytes())};
}

WorkHandle Group::recorded(FlightEntry entry, const std::function<WorkHandle()>& call) {
  at::RecordFunction traced(at::RecordScope::USER_SCOPE);  // seen by a profiler, if one runs
  if (traced.isActive()) traced.before(entry.name());
  const std::uint64_t id = recorder_->begin(std::move(entry));
  WorkHandle work;
  try {
    work = call();
  } catch (...) {
    recorder_->cancel(id);  // refused before it started; the caller may continue
    throw;
  }
  if (auto host_work = c10::dynamic_intrusive_pointer_cast<HostWork>(work)) {
    host_work->on_end([recorder = recorder_, id](const std::string& error) { recorder->finish(id, error); });
  } else {
    recorder_->finish_when(id, [work] {
      if (!work->isCompleted()) return false;
      if (const auto error = work->exception()) std::rethrow_exception(error);  // it counts as completed, too
      return true;
    });
  }
  return work;
}

WorkHandle Group::all_reduce(at::Tensor tensor, ReduceOp::RedOpType op, std::string_view unit) {
  check_reducible(tensor.scalar_type(), op);
  return recorded(entry("all_reduce", unit, tensor, name_of(op)), [&] {
    std::vector<at::Tensor> tensors{tensor};
    return backend_->allreduce(tensors, {.reduceOp = op});
  });
}

WorkHandle Group::all_gather(at::Tensor output, at::Tensor input, std::string_view unit) {
  check_tensor("all_gather", input);
  return recorded(entry("all_gather", unit, output, ""), [&] { return backend_->_allgather_base(output, input); });
}

WorkHandle Group::reduce_scatter(at::Tensor output, at::Tensor input, ReduceOp::RedOpType op, std::string_view unit) {
  check_reducible(input.scalar_type(), op);
  check_tensor("reduce_scatter", output);
  return recorded(entry("reduce_scatter", unit, input, name_of(op)),
                  [&] { return backend_->_reduce_scatter_base(output, input, {.reduceOp = op}); });
}

WorkHandle Group::broadcast(at::Tensor tensor, int root, std::string_view unit) {
  return recorded(entry("broadcast", unit, tensor, fmt::format("from rank {}", root)), [&] {
    std::vector<at::Tensor> tensors{tensor};
    return backend_->broadcast(tensors, {.rootRank = root});
  });
}

WorkHandle Group::reduce(at::Tensor tensor, int root, ReduceOp::RedOpType op, std::string_view unit) {
  check_reducible(tensor.scalar_type(), op);
  return recorded(entry("reduce", unit, tensor, fmt::format("{} to rank {}", name_of(op), root)), [&] {
    std::vector<at::Tensor> tensors{tensor};
    return backend_->reduce(tensors, {.reduceOp = op, .rootRank = root});
  });
}

WorkHandle Group::all_to_all(at::Tensor output, at::Tensor input, std::vector<std::int64_t> output_splits,
                             std::vector<std::int64_t> input_splits, std::string_view unit) {
  check_tensor("all_to_all", output);
  return recorded(entry("all_to_all", unit, input, ""),
                  [&] { return backend_->alltoall_base(output, input, output_splits, input_splits); });
}

WorkHandle Group::send(at::Tensor tensor, int destination, std::string_view unit) {
  return recorded(entry("send", unit, tensor, fmt::format("to rank {}", destination)), [&] {
    std::vector<at::Tensor> tensors{tensor};
    return backend_->send(tensors, destination, 0);
  });
}

WorkHandle Group::recv(at::Tensor tensor, int source, std::string_view unit) {
  return recorded(entry("recv", unit, tensor, fmt::format("from rank {}", source)), [&] {
    std::vector<at::Tensor> tensors{tensor};
    return backend_->recv(tensors, source, 0);
  });
}

WorkHandle Group::barrier(std::string_view unit) {
  return recorded({.group = name_, .ranks = ranks_, .operation = "barrier", .unit = std::string(unit)},
                  [&] { return backend_->barrier(); });
}

}  // namespace tessera
