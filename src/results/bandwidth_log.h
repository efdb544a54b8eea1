// Tables of collective bandwidth in log files: what `tessera comm-test` and nccl-tests print. (no torch)
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct BandwidthLog {
  struct Row {
    double bytes = 0, bus_GBps = 0;
  };
  std::string name;       // "all_reduce, 8 ranks": what the log says of itself, else the file's name
  std::vector<Row> rows;  // the faster of out-of-place and in-place
};

// Nothing: the text has no such table.
std::optional<BandwidthLog> parse_bandwidth_log(const std::string& text, const std::string& file_name);

// Log files named comm_test* or nccl* at and below these places, as runs are found, and every file *.log among them.
// Files without a table are left out.
std::vector<BandwidthLog> find_bandwidth_logs(const std::vector<std::string>& places);

}  // namespace tessera
