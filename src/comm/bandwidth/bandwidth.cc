#include "comm/bandwidth/bandwidth.h"

#include <ATen/ops/empty.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "comm/exchange.h"
#include "comm/gpu_support.h"
#include "core/log.h"
#include "core/quantity.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
using Numbers = std::vector<double>;

// In receive buffers before a check: neither a value of the pattern nor, up to 16 ranks, a sum of values.
constexpr int kPoison = 251;

double choose_time_ns(const std::vector<Numbers>& times, TimeOf time_of) {
  double sum = 0;
  for (const Numbers& ns : times) sum += ns.front();
  switch (time_of) {
    case TimeOf::kRankZero:
      return times.front().front();
    case TimeOf::kFastest:
      return std::ranges::min(times).front();
    case TimeOf::kSlowest:
      return std::ranges::max(times).front();
    default:
      return sum / static_cast<double>(times.size());
  }
}

std::int64_t free_gpu_bytes(at::Device device) {
  at::empty({1}, at::TensorOptions().device(device));  // torch sets up the device's allocator with the first tensor
  return static_cast<std::int64_t>(at::getDeviceAllocator(device.type())->getMemoryInfo(device.index()).first);
}

// Buffers of one rank for each byte of S: send and receive.
double buffers_per_size(const BandwidthOptions& options, int num_ranks) {
  const double part = 1.0 / num_ranks;
  switch (options.operation) {
    case TestOperation::kAllGather:
    case TestOperation::kReduceScatter:
      return 1 + part;
    default:
      return 2;
  }
}

// What the backend also needs on the host: our backends stage a GPU's buffers there; threads of one process reduce into
// separate memory; reducing to a root needs one part.
double backend_buffers_per_size(const World& world, const BandwidthOptions& options) {
  if (world.backend_name() == "nccl") return 0;
  if (world.backend_name() == "threads") return 1;
  const double staged = world.device().is_cuda() ? buffers_per_size(options, world.size()) : 0;
  return staged + (options.operation == TestOperation::kReduce ? 1.0 / world.size() : 0);
}

struct MemoryPlace {
  std::string name;
  MemoryNeed need;
  std::int64_t available = 0;
};

std::string refusal_text(const MemoryPlace& place, std::int64_t max_bytes) {
  const std::int64_t largest = place.need.largest_size(place.available);
  return fmt::format(
      "-e {}: the buffers do not fit in the memory of {}: {} rank{} {} {} ({:.2g} buffers of {} each, and {} of "
      "workspace), {} is free and {:.0f} % of it may be used; {}",
      format_bytes(max_bytes), place.name, place.need.num_ranks, place.need.num_ranks == 1 ? "" : "s together",
      place.need.num_ranks == 1 ? "needs" : "need", human_bytes(place.need.of(max_bytes)), place.need.buffers_per_size,
      human_bytes(max_bytes), human_bytes(MemoryNeed::kWorkBytes), human_bytes(place.available),
      100 * MemoryNeed::kUsableShare,
      largest > 0 ? fmt::format("the largest size that fits is -e {}", format_bytes(largest)) : "no size fits");
}

}  // namespace

BandwidthTest::BandwidthTest(World& world, BandwidthOptions options, std::int64_t max_bytes)
    : world_(world), group_(world.all()), options_(std::move(options)) {
  const MessageShape largest = shape(max_bytes);
  const auto tensor_options = at::TensorOptions().dtype(options_.type).device(world.device());
  send_ = at::empty({largest.send_numel}, tensor_options);
  receive_ = at::empty({largest.receive_numel}, tensor_options);
  // Touched now, so that no page fault is timed.
  send_.fill_(1);
  receive_.fill_(1);
}

void BandwidthTest::warm_up(std::int64_t size_bytes) {
  for (int i = 0; i < options_.num_warmups; ++i) run_once(shape(size_bytes), /*in_place=*/false);
  synchronize();
}

BandwidthRow BandwidthTest::measure(std::int64_t size_bytes) {
  BandwidthRow row;
  row.shape = shape(size_bytes);
  row.out_of_place = measure_form(row.shape, /*in_place=*/false);
  if (traits_of(options_.operation).can_be_in_place) row.in_place = measure_form(row.shape, /*in_place=*/true);
  return row;
}

BandwidthTotals BandwidthTest::totals() const {
  BandwidthTotals totals{.num_ranks = world_.size(), .average_bus_bandwidth = std::nullopt, .num_wrong = num_wrong_};
  if (num_timed_ > 0) totals.average_bus_bandwidth = bus_bandwidth_sum_ / num_timed_;
  return totals;
}

Measurement BandwidthTest::measure_form(const MessageShape& shape, bool in_place) {
  Measurement result;
  if (options_.num_iterations > 0) {
    const auto times = gather_numbers(world_, {static_cast<double>(time_ns(shape, in_place))});
    const double seconds = choose_time_ns(times, options_.time_of) / 1e9 / options_.num_iterations;
    result.seconds = seconds;
    result.algorithm_bandwidth = algorithm_bandwidth(shape.bytes, seconds);
    result.bus_bandwidth = result.algorithm_bandwidth * bus_factor(options_.operation, world_.size());
    bus_bandwidth_sum_ += result.bus_bandwidth;
    ++num_timed_;
  }
  if (options_.num_checks > 0) {
    std::int64_t total = 0;
    for (const Numbers& wrong : gather_numbers(world_, {static_cast<double>(count_wrong(shape, in_place))})) {
      total += static_cast<std::int64_t>(wrong.front());
    }
    result.num_wrong = total;
    num_wrong_ += total;
  }
  return result;
}

std::int64_t BandwidthTest::time_ns(const MessageShape& shape, bool in_place) {
  // Zeros stay zeros: other data, added to itself again and again, would overflow.
  send_.zero_();
  receive_.zero_();
  synchronize();
  group_.barrier("comm-test start")->wait();
  const auto start = Clock::now();
  for (int i = 0; i < options_.num_iterations; ++i) {
    run_once(shape, in_place);
    if (options_.blocking) synchronize();
  }
  synchronize();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

void BandwidthTest::run_once(const MessageShape& shape, bool in_place) {
  const at::Tensor send = send_buffer(shape), receive = receive_buffer(shape);
  const bool is_root = group_.rank() == options_.root;
  const bool reads_own = options_.operation != TestOperation::kBroadcast || is_root;
  if (traits_of(options_.operation).copies_first && !in_place && reads_own) receive.copy_(send, /*non_blocking=*/true);
  switch (options_.operation) {
    case TestOperation::kAllReduce:
      group_.all_reduce(receive, options_.reduce_op, "comm-test")->wait();
      break;
    case TestOperation::kAllGather:
      group_.all_gather(receive, in_place ? own_part(receive) : send, "comm-test")->wait();
      break;
    case TestOperation::kReduceScatter:
      group_.reduce_scatter(in_place ? own_part(send) : receive, send, options_.reduce_op, "comm-test")->wait();
      break;
    case TestOperation::kBroadcast:
      group_.broadcast(receive, options_.root, "comm-test")->wait();
      break;
    case TestOperation::kReduce:
      group_.reduce(receive, options_.root, options_.reduce_op, "comm-test")->wait();
      break;
    case TestOperation::kAllToAll:
      group_.all_to_all(receive, send, {}, {}, "comm-test")->wait();
      break;
    case TestOperation::kSendRecv:
      send_and_receive(shape);
      break;
  }
}

// A ring: to the next rank, from the one before, both ways at once.
void BandwidthTest::send_and_receive(const MessageShape& shape) {
  const int next = (group_.rank() + 1) % group_.size();
  const int previous = (group_.rank() + group_.size() - 1) % group_.size();
  if (world_.backend_name() != "nccl") {
    const WorkHandle sent = group_.send(send_buffer(shape), next, "comm-test");
    const WorkHandle received = group_.recv(receive_buffer(shape), previous, "comm-test");
    sent->wait();
    received->wait();
    return;
  }
  // NCCL's sends wait for their receivers: both must be one operation, or every rank waits for the next.
  std::vector<at::Tensor> out{send_buffer(shape)}, in{receive_buffer(shape)};
  c10d::Backend& backend = group_.backend();
  backend.startCoalescing();
  backend.send(out, next, 0);
  backend.recv(in, previous, 0);
  backend.endCoalescing()->wait();
}

std::int64_t BandwidthTest::count_wrong(const MessageShape& shape, bool in_place) {
  std::int64_t num_wrong = 0;
  for (int i = 0; i < options_.num_checks; ++i) {
    const TestPattern pattern(group_.size(), options_.type, world_.device(), num_rounds_++);
    const at::Tensor own = pattern.of_rank(group_.rank());
    const at::Tensor send = send_buffer(shape), receive = receive_buffer(shape);
    fill_periodic(send, own);
    receive.fill_(kPoison);
    const bool is_broadcast = options_.operation == TestOperation::kBroadcast;
    if (in_place && options_.operation == TestOperation::kAllGather) {
      fill_periodic(own_part(receive), own);
    } else if (in_place && options_.operation != TestOperation::kReduceScatter &&
               (!is_broadcast || group_.rank() == options_.root)) {
      fill_periodic(receive, own);
    }
    run_once(shape, in_place);
    at::Tensor result = in_place && options_.operation == TestOperation::kReduceScatter ? own_part(send) : receive;
    if (options_.tamper) options_.tamper(result);
    for (const Expectation& expected : expectations(shape, in_place, pattern)) {
      const Mismatch mismatch = check_periodic(expected.part, expected.period, expected.begin, group_.size());
      if (mismatch.num_wrong > 0) {
        log_error(
            "{} of {} bytes, {}: {} wrong elements on this rank; the first, at index {} of a part, is {} instead of {}",
            traits_of(options_.operation).name, shape.bytes, in_place ? "in place" : "out of place", mismatch.num_wrong,
            mismatch.first_index, mismatch.found, mismatch.expected);
      }
      num_wrong += mismatch.num_wrong;
    }
  }
  return num_wrong;
}

std::vector<BandwidthTest::Expectation> BandwidthTest::expectations(const MessageShape& shape, bool in_place,
                                                                    const TestPattern& pattern) {
  const at::Tensor receive = receive_buffer(shape);
  const std::int64_t own_begin = group_.rank() * shape.count;
  std::vector<Expectation> result;
  switch (options_.operation) {
    case TestOperation::kAllReduce:
      return {{receive, pattern.reduced(options_.reduce_op), 0}};
    case TestOperation::kReduceScatter:
      return {{in_place ? own_part(send_buffer(shape)) : receive, pattern.reduced(options_.reduce_op), own_begin}};
    case TestOperation::kBroadcast:
      return {{receive, pattern.of_rank(options_.root), 0}};
    case TestOperation::kReduce:  // what the others' buffers hold afterwards is undefined
      if (group_.rank() == options_.root) result.push_back({receive, pattern.reduced(options_.reduce_op), 0});
      return result;
    case TestOperation::kSendRecv:
      return {{receive, pattern.of_rank((group_.rank() + group_.size() - 1) % group_.size()), 0}};
    default:  // all-gather: the whole of each rank's data; all-to-all: the part of it that is for this rank
      for (int rank = 0; rank < group_.size(); ++rank) {
        const std::int64_t begin = options_.operation == TestOperation::kAllToAll ? own_begin : 0;
        result.push_back({receive.narrow(0, rank * shape.count, shape.count), pattern.of_rank(rank), begin});
      }
      return result;
  }
}

MessageShape BandwidthTest::shape(std::int64_t size_bytes) const {
  const auto item_bytes = static_cast<std::int64_t>(c10::elementSize(options_.type));
  return shape_of(options_.operation, size_bytes, item_bytes, world_.size());
}

at::Tensor BandwidthTest::send_buffer(const MessageShape& shape) const {
  return send_.narrow(0, 0, shape.send_numel);
}

at::Tensor BandwidthTest::receive_buffer(const MessageShape& shape) const {
  return receive_.narrow(0, 0, shape.receive_numel);
}

at::Tensor BandwidthTest::own_part(const at::Tensor& whole) const {
  const std::int64_t numel = whole.numel() / group_.size();
  return whole.narrow(0, group_.rank() * numel, numel);
}

void BandwidthTest::synchronize() const {
  if (world_.device().is_cuda()) gpu_support()->synchronize();
}

std::string memory_refusal(World& world, const BandwidthOptions& options, std::int64_t max_bytes,
                           std::int64_t available_host_bytes) {
  const bool on_gpu = world.device().is_cuda();
  const double buffers = buffers_per_size(options, world.size());
  const double on_host = (on_gpu ? 0 : buffers) + backend_buffers_per_size(world, options);
  // After this gather every rank has looked, and none has allocated yet. [rank]: host bytes, GPU, GPU bytes
  const std::vector<Numbers> seen =
      gather_numbers(world, {static_cast<double>(available_host_bytes), on_gpu ? world.device().index() : -1.0,
                             on_gpu ? static_cast<double>(free_gpu_bytes(world.device())) : 0.0});
  const bool may_share_gpus = world.backend_name() != "nccl";
  for (std::size_t rank = 0; rank < seen.size(); ++rank) {
    const std::string& host = world.hosts()[rank];
    MemoryPlace host_place{host, {on_host, 0}, static_cast<std::int64_t>(seen[rank][0])};
    MemoryPlace gpu_place{fmt::format("GPU {} of {}", static_cast<int>(seen[rank][1]), host),
                          {buffers, 0},
                          static_cast<std::int64_t>(seen[rank][2])};
    for (std::size_t other = 0; other < seen.size(); ++other) {
      if (world.hosts()[other] != host) continue;
      ++host_place.need.num_ranks;
      host_place.available = std::min(host_place.available, static_cast<std::int64_t>(seen[other][0]));
      // With NCCL each rank has a GPU of its own, though each may call it number 0.
      if (other == rank || (may_share_gpus && seen[other][1] == seen[rank][1])) ++gpu_place.need.num_ranks;
    }
    if (on_gpu && !gpu_place.need.fits(max_bytes, gpu_place.available)) return refusal_text(gpu_place, max_bytes);
    if (on_host > 0 && !host_place.need.fits(max_bytes, host_place.available)) {
      return refusal_text(host_place, max_bytes);
    }
  }
  return {};
}

}  // namespace tessera
