// Measures collectives between the ranks of a world and checks their results.
//
// Order: every rank makes a BandwidthTest with the same options and calls measure() with the same sizes; the rows are
// the same on every rank, so that all reach the same verdict. Call memory_refusal() first: the constructor allocates
// the buffers for the largest size.
//
// The time is that of `num_iterations` calls in a row, divided by their number; by default the mean over the ranks, as
// in nccl-tests. On CPUs each call is waited for; on GPUs the calls are queued and the device is waited for at the end
// (after each call with `blocking`). For operations that only work in place (all-reduce, broadcast, reduce), the
// out-of-place columns include the copy into the receive buffer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/bandwidth/operations.h"
#include "tessera/world.h"

namespace tessera {

class TestPattern;

// Which rank's time counts, by the numbers of nccl-tests' -a.
enum class TimeOf { kRankZero = 0, kMean = 1, kFastest = 2, kSlowest = 3 };

struct BandwidthOptions {
  TestOperation operation = TestOperation::kAllReduce;
  at::ScalarType type = at::kFloat;
  ReduceOp::RedOpType reduce_op = ReduceOp::SUM;
  int root = 0;
  int num_iterations = 20;
  int num_warmups = 5;
  int num_checks = 1;  // 0: data is not checked
  bool blocking = false;
  TimeOf time_of = TimeOf::kMean;
  // For tests: may spoil a rank's result before it is checked.
  std::function<void(at::Tensor& result)> tamper;
};

struct Measurement {
  std::optional<double> seconds;  // one call; nothing: none was timed
  double algorithm_bandwidth = 0, bus_bandwidth = 0;
  std::optional<std::int64_t> num_wrong;  // of all ranks; nothing: not checked
};

struct BandwidthRow {
  MessageShape shape;
  Measurement out_of_place;
  std::optional<Measurement> in_place;  // nothing: the operation has no such form
};

class BandwidthTest {
 public:
  BandwidthTest(World& world, BandwidthOptions options, std::int64_t max_bytes);

  // nccl-tests warms up once, with the largest and the smallest size.
  void warm_up(std::int64_t size_bytes);
  BandwidthRow measure(std::int64_t size_bytes);

  // Over all rows so far.
  BandwidthTotals totals() const;

 private:
  // The part of a rank's result that is known, and what it must be.
  struct Expectation {
    at::Tensor part;
    at::Tensor period;
    std::int64_t begin;
  };
  Measurement measure_form(const MessageShape& shape, bool in_place);
  void run_once(const MessageShape& shape, bool in_place);
  void send_and_receive(const MessageShape& shape);
  std::int64_t time_ns(const MessageShape& shape, bool in_place);
  std::int64_t count_wrong(const MessageShape& shape, bool in_place);
  std::vector<Expectation> expectations(const MessageShape& shape, bool in_place, const TestPattern& pattern);
  MessageShape shape(std::int64_t size_bytes) const;
  at::Tensor send_buffer(const MessageShape& shape) const;
  at::Tensor receive_buffer(const MessageShape& shape) const;
  at::Tensor own_part(const at::Tensor& whole) const;
  void synchronize() const;

  World& world_;
  Group& group_;
  BandwidthOptions options_;
  at::Tensor send_, receive_;  // as large as the largest size needs
  int num_rounds_ = 0;         // of checks: each has data of its own
  double bus_bandwidth_sum_ = 0;
  int num_timed_ = 0;
  std::int64_t num_wrong_ = 0;
};

// Empty if `max_bytes` fits in the memory of every host and GPU; otherwise says what is needed, what is free and the
// largest size that fits. Collective; all ranks get the same answer; allocates nothing. `available_host_bytes` is what
// this rank sees free on its host.
std::string memory_refusal(World& world, const BandwidthOptions& options, std::int64_t max_bytes,
                           std::int64_t available_host_bytes);

// The table of `tessera comm-test`, in nccl-tests' columns, so that programs that read its output can read ours.
struct ReportHeader {
  int num_ranks = 1;
  std::int64_t min_bytes = 0, max_bytes = 0;
  std::string step;  // "2(factor)", "1048576(bytes)"
  std::string backend, device;
  std::vector<std::string> hosts;  // by rank
  std::vector<std::string> idle;   // flags of nccl-tests that were given and change nothing: "-p", "-G"
};

// Every line of these ends with a newline and, except for the row, begins with '#'.
std::string report_header(const ReportHeader& header, const BandwidthOptions& options);
std::string report_row(const BandwidthRow& row, const BandwidthOptions& options);
std::string report_footer(const BandwidthTotals& totals, bool checked);

// As the command line and the table name them: float, half, bfloat16, int32, int64, uint8; sum, avg, max, min.
std::vector<std::string> type_names();
at::ScalarType type_named(const std::string& name);
std::vector<std::string> reduction_names();
ReduceOp::RedOpType reduction_named(const std::string& name);

}  // namespace tessera
