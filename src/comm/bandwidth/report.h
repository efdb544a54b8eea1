// The table of `tessera comm-test`, in nccl-tests' columns, so that programs that read its output can read ours.
#pragma once

#include <string>
#include <vector>

#include "comm/bandwidth/bandwidth.h"

namespace tessera {

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
