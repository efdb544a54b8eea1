#include "comm/collective_checks.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "comm/flight_recorder.h"
#include "core/error.h"

namespace tessera {
namespace {

constexpr at::ScalarType kTypes[] = {at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kByte};
// Empty, one, fewer than the ranks, odd sizes, one above the small limit, several chunks with a short last part.
constexpr std::int64_t kSizes[] = {0, 1, 3, 1000, 5001, 300'007};

// The tensor that `rank` contributes to the case `seed`: every rank can compute all of them.
at::Tensor contribution_of(int rank, std::int64_t numel, at::ScalarType type, std::uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed * 1000 + static_cast<std::uint64_t>(rank));
  if (at::isIntegralType(type, true)) return at::randint(0, 40, {numel}, generator, at::kLong).to(type);
  return (at::randn({numel}, generator, at::kFloat) * 3).to(type);
}

std::vector<at::Tensor> contributions(World& world, std::int64_t numel, at::ScalarType type, std::uint64_t seed) {
  std::vector<at::Tensor> tensors;
  for (int r = 0; r < world.size(); ++r) tensors.push_back(contribution_of(r, numel, type, seed));
  return tensors;
}

// Bit for bit, on any device.
bool same(const at::Tensor& a, const at::Tensor& b) {
  return at::equal(a.cpu(), b.cpu());
}

at::Tensor combine(const at::Tensor& a, const at::Tensor& b, ReduceOp::RedOpType op) {
  if (op == ReduceOp::MAX) return at::maximum(a, b);
  if (op == ReduceOp::MIN) return at::minimum(a, b);
  return a + b;
}

// The plain reference: within the node by rank, then across nodes; half types in float, rounded once per node.
at::Tensor expected_reduction(World& world, const std::vector<at::Tensor>& tensors, ReduceOp::RedOpType op) {
  const at::ScalarType type = tensors.front().scalar_type();
  const bool in_float = type == at::kHalf || type == at::kBFloat16;
  std::vector<at::Tensor> nodes;
  for (int node = 0; node < world.num_nodes(); ++node) {
    at::Tensor sum;
    for (int r = 0; r < world.size(); ++r) {
      if (world.node_of_rank()[static_cast<std::size_t>(r)] != node) continue;
      const at::Tensor& source = tensors[static_cast<std::size_t>(r)];
      const at::Tensor wide = in_float ? source.to(at::kFloat) : source;
      sum = sum.defined() ? combine(sum, wide, op) : wide;
    }
    nodes.push_back(world.num_nodes() > 1 && in_float ? sum.to(type).to(at::kFloat) : sum);
  }
  at::Tensor total = nodes.front();
  for (std::size_t n = 1; n < nodes.size(); ++n) total = combine(total, nodes[n], op);
  if (op == ReduceOp::AVG) total = total / world.size();
  return total.to(type);
}

at::Tensor own_part(const at::Tensor& whole, World& world) {
  return whole.chunk(world.size())[static_cast<std::size_t>(world.rank())];
}

std::vector<ReduceOp::RedOpType> operations_of(at::ScalarType type) {
  if (at::isIntegralType(type, true)) return {ReduceOp::SUM, ReduceOp::MAX, ReduceOp::MIN};
  return {ReduceOp::SUM, ReduceOp::AVG, ReduceOp::MAX, ReduceOp::MIN};
}

void check_one_reduction(World& world, at::ScalarType type, ReduceOp::RedOpType op, std::int64_t numel) {
  SCOPED_TRACE(testing::Message() << type << " op " << static_cast<int>(op) << " numel " << numel);
  const auto inputs = contributions(world, numel, type, 7);
  const at::Tensor expected = expected_reduction(world, inputs, op);
  const at::Tensor own = inputs[static_cast<std::size_t>(world.rank())].to(world.device());

  at::Tensor reduced = own.clone();
  world.all().all_reduce(reduced, op)->wait();
  EXPECT_TRUE(same(reduced, expected)) << "all_reduce";

  for (int root = 0; root < world.size(); ++root) {
    at::Tensor at_root = own.clone();
    world.all().reduce(at_root, root, op)->wait();
    EXPECT_TRUE(same(at_root, world.rank() == root ? expected : own)) << "reduce to " << root;
  }
}

}  // namespace

void check_reductions(World& world) {
  for (at::ScalarType type : kTypes) {
    for (ReduceOp::RedOpType op : operations_of(type)) {
      for (std::int64_t numel : kSizes) check_one_reduction(world, type, op, numel);
    }
  }
}

void check_moves(World& world) {
  const int size = world.size(), rank = world.rank();
  Group& all = world.all();
  for (at::ScalarType type : kTypes) {
    for (std::int64_t numel : kSizes) {
      SCOPED_TRACE(testing::Message() << type << " numel " << numel);
      const auto inputs = contributions(world, numel, type, 9);
      const at::Tensor own = inputs[static_cast<std::size_t>(rank)].to(world.device());

      at::Tensor gathered = at::empty({numel * size}, own.options());
      all.all_gather(gathered, own)->wait();
      EXPECT_TRUE(same(gathered, at::cat(inputs))) << "all_gather";
      at::Tensor in_place = at::empty({numel * size}, own.options());
      at::Tensor part = in_place.narrow(0, rank * numel, numel);
      part.copy_(own);
      all.all_gather(in_place, part)->wait();
      EXPECT_TRUE(same(in_place, gathered)) << "all_gather in place";

      for (int root = 0; root < size; ++root) {
        at::Tensor received = own.clone();
        all.broadcast(received, root)->wait();
        EXPECT_TRUE(same(received, inputs[static_cast<std::size_t>(root)])) << "broadcast from " << root;
      }

      // All ranks send before any receives: messages do not wait for one another.
      at::Tensor from_left = at::empty_like(own);
      WorkHandle sent = all.send(own, (rank + 1) % size);
      all.recv(from_left, (rank + size - 1) % size)->wait();
      sent->wait();
      EXPECT_TRUE(same(from_left, inputs[static_cast<std::size_t>((rank + size - 1) % size)])) << "send, recv";
    }
  }

  // All-to-all with parts of different sizes, some empty: rank r sends r + 2 * k elements to rank k.
  std::vector<std::int64_t> to, from;
  for (int k = 0; k < size; ++k) {
    to.push_back(rank + 2 * k);
    from.push_back(k + 2 * rank);
  }
  const auto total = [](const std::vector<std::int64_t>& v) {
    return std::accumulate(v.begin(), v.end(), std::int64_t{0});
  };
  const at::TensorOptions ints = at::TensorOptions(at::kInt).device(world.device());
  const at::TensorOptions floats = at::TensorOptions(at::kFloat).device(world.device());
  at::Tensor input = at::empty({total(to)}, ints), output = at::full({total(from)}, -1, ints);
  std::int64_t at_element = 0;
  for (int k = 0; k < size; ++k) {
    input.narrow(0, at_element, to[static_cast<std::size_t>(k)]).fill_(100 * rank + k);
    at_element += to[static_cast<std::size_t>(k)];
  }
  all.all_to_all(output, input, from, to)->wait();
  at_element = 0;
  for (int k = 0; k < size; ++k) {
    const std::int64_t n = from[static_cast<std::size_t>(k)];
    EXPECT_TRUE(output.narrow(0, at_element, n).eq(100 * k + rank).all().item<bool>()) << "all_to_all from " << k;
    at_element += n;
  }
  at::Tensor equal_in = at::arange(size * 5, floats) + 1000 * rank, equal_out = at::empty({size * 5}, floats);
  all.all_to_all(equal_out, equal_in)->wait();
  for (int k = 0; k < size; ++k) {
    EXPECT_TRUE(same(equal_out.narrow(0, 5 * k, 5), at::arange(5 * rank, 5 * rank + 5, at::kFloat) + 1000 * k));
  }
}

void check_same_bits_by_every_way(World& world) {
  for (at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (std::int64_t part : {std::int64_t{1}, std::int64_t{11}, std::int64_t{70'001}}) {
      SCOPED_TRACE(testing::Message() << type << " part " << part);
      const at::Tensor own = contribution_of(world.rank(), part * world.size(), type, 11).to(world.device());
      at::Tensor whole = own.clone();
      world.all().all_reduce(whole)->wait();

      at::Tensor scattered = at::empty({part}, own.options());
      world.all().reduce_scatter(scattered, own)->wait();
      EXPECT_TRUE(same(scattered, own_part(whole, world))) << "reduce_scatter";
      at::Tensor copy = own.clone();
      at::Tensor in_place = copy.narrow(0, world.rank() * part, part);
      world.all().reduce_scatter(in_place, copy)->wait();
      EXPECT_TRUE(same(in_place, scattered)) << "reduce_scatter in place";

      // Within the nodes, then across them, as HYBRID_SHARD does on nodes of equal size.
      if (world.size() % world.num_nodes() == 0) {
        at::Tensor two_steps = own.clone();
        world.node().all_reduce(two_steps)->wait();
        world.across().all_reduce(two_steps)->wait();
        EXPECT_TRUE(same(two_steps, whole)) << "node, then across";
      }

      // A piece of the buffer alone gives the same bits as within the whole.
      at::Tensor piece = own.narrow(0, own.numel() / 2, own.numel() - own.numel() / 2).clone();
      world.all().all_reduce(piece)->wait();
      EXPECT_TRUE(same(piece, whole.narrow(0, own.numel() / 2, piece.numel()))) << "a piece alone";
    }
  }
}

void check_many_in_flight(World& world) {
  Group& all = world.all();
  std::vector<int> reversed(static_cast<std::size_t>(world.size()));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  Group& backwards = world.group(reversed);
  EXPECT_EQ(&backwards, &world.group(reversed)) << "a group is made once";
  EXPECT_EQ(backwards.rank(), world.size() - 1 - world.rank());

  constexpr int kRounds = 8;
  std::vector<at::Tensor> first, second;
  std::vector<WorkHandle> works;
  for (int i = 0; i < kRounds; ++i) {
    first.push_back(at::full({100'000}, world.rank() + i, at::TensorOptions(at::kFloat).device(world.device())));
    second.push_back(
        at::full({i % 2 == 0 ? 10 : 50'000}, world.rank(), at::TensorOptions(at::kInt).device(world.device())));
    // Even ranks start on one group, odd ranks on the other: groups do not wait for each other.
    if (world.rank() % 2 == 0) works.push_back(all.all_reduce(first.back()));
    works.push_back(backwards.broadcast(second.back(), 0));
    if (world.rank() % 2 == 1) works.push_back(all.all_reduce(first.back()));
  }
  for (const WorkHandle& work : works) work->wait();
  const int n = world.size(), sum_of_ranks = n * (n - 1) / 2;
  for (int i = 0; i < kRounds; ++i) {
    EXPECT_TRUE(first[static_cast<std::size_t>(i)].eq(sum_of_ranks + n * i).all().item<bool>()) << i;
    EXPECT_TRUE(second[static_cast<std::size_t>(i)].eq(n - 1).all().item<bool>()) << i;
  }
}

void check_refusals(World& world) {
  Group& all = world.all();
  const auto message = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  std::string text = message([&] { all.all_reduce(at::zeros({4, 4}).t()); });
  EXPECT_TRUE(has(text, "contiguous") && has(text, "[1, 4]")) << text;
  text = message([&] { all.all_reduce(at::zeros({4}, at::kDouble)); });
  EXPECT_TRUE(has(text, "Double") && has(text, "bfloat16")) << text;
  text = message([&] { all.all_reduce(at::zeros({4}, at::kInt), ReduceOp::AVG); });
  EXPECT_TRUE(has(text, "average of Int")) << text;
  text = message([&] { all.all_gather(at::zeros({world.size() * 3 + 1}), at::zeros({3})); });
  EXPECT_TRUE(has(text, "all_gather") && has(text, "pad it")) << text;
  text = message([&] { all.reduce_scatter(at::zeros({3}), at::zeros({world.size() * 3 + 1})); });
  EXPECT_TRUE(has(text, "reduce_scatter") && has(text, "pad it")) << text;
  text = message([&] { all.broadcast(at::zeros({3}), world.size()); });
  EXPECT_TRUE(has(text, "is not in this group")) << text;
  text = message([&] { all.all_gather(at::zeros({world.size() * 3}), at::zeros({3}, at::kInt)); });
  EXPECT_TRUE(has(text, "must have the same type and device")) << text;
  text = message([&] { world.group({0, 0}); });
  EXPECT_TRUE(has(text, "distinct ranks")) << text;
  at::Tensor shared = at::zeros({world.size() * 4});
  text = message([&] { all.all_to_all(shared, shared); });
  EXPECT_TRUE(has(text, "overlap")) << text;

  // The caller can fix what was refused: the run continues, and the watchdog leaves it alone.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  at::Tensor ones = at::ones({10}, at::TensorOptions(at::kFloat).device(world.device()));
  all.all_reduce(ones)->wait();
  EXPECT_TRUE(ones.eq(world.size()).all().item<bool>());
}

void check_threads_on_groups(World& world) {
  std::vector<int> ranks(static_cast<std::size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<Group*> groups;
  for (int i = 0; i < world.size(); ++i) {  // the same members in another order: another group
    groups.push_back(&world.group(ranks));
    std::rotate(ranks.begin(), ranks.begin() + 1, ranks.end());
  }
  std::vector<std::thread> threads;
  for (Group* group : groups) {
    threads.emplace_back([group, &world] {
      for (int i = 0; i < 50; ++i) {
        at::Tensor tensor = at::full({i * 97 + 1}, world.rank(), at::kFloat);
        WorkHandle work = group->all_reduce(tensor);
        if (i % 3 == 0) {
          while (!work->isCompleted()) std::this_thread::yield();  // nobody waits: the progress thread must do it
        }
        work->wait();
        EXPECT_TRUE(tensor.eq(world.size() * (world.size() - 1) / 2).all().item<bool>());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void check_queue_of_many(World& world) {
  std::vector<at::Tensor> tensors;
  std::vector<WorkHandle> works;
  for (int i = 0; i < 2000; ++i) {
    tensors.push_back(at::ones({8}));
    works.push_back(world.all().all_reduce(tensors.back()));
  }
  for (const WorkHandle& work : works) work->wait();
  EXPECT_TRUE(tensors.back().eq(world.size()).all().item<bool>());
}

void check_layout(World& world, int ranks_per_node) {
  const int per_node = ranks_per_node > 0 ? ranks_per_node : world.size();
  EXPECT_EQ(world.num_nodes(), (world.size() + per_node - 1) / per_node);
  EXPECT_EQ(world.node_rank(), world.rank() / per_node);
  EXPECT_EQ(world.local_rank(), world.rank() % per_node);
  EXPECT_EQ(world.node().rank(), world.local_rank());
  EXPECT_EQ(world.across().rank(), world.num_nodes() == 1 ? 0 : world.node_rank());
  EXPECT_EQ(world.all().size(), world.size());
}

void check_recorded(World& world) {
  world.all()
      .all_reduce(at::zeros({256}, at::TensorOptions().device(world.device())), ReduceOp::SUM, "block.3")
      ->wait();
  const auto entries = world.recorder().entries();
  const FlightEntry& last = entries.back();
  EXPECT_EQ(last.operation, "all_reduce");
  EXPECT_EQ(last.unit, "block.3");
  EXPECT_EQ(last.bytes, 1024);
  EXPECT_EQ(last.group, "world");
  EXPECT_TRUE(last.done);
  EXPECT_LE(last.start, last.end);
}

void check_everything(World& world, int ranks_per_node) {
  check_layout(world, ranks_per_node);
  check_reductions(world);
  check_moves(world);
  check_same_bits_by_every_way(world);
  check_many_in_flight(world);
  check_threads_on_groups(world);
  check_queue_of_many(world);
  check_recorded(world);
  check_refusals(world);
}

}  // namespace tessera
