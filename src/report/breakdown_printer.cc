#include "report/breakdown_printer.h"

#include <fmt/format.h>

namespace tessera {

std::string breakdown_line(const PartSeconds& parts) {
  std::string line = "time (ms)";
  for (std::size_t i = 0; i < kNumStepParts; ++i) {
    line += fmt::format(" | {}: {:.2f}", step_part_names()[i], 1000 * parts[i]);
  }
  return line;
}

// Only lines of training have a loss.
void BreakdownPrinter::on_log(const RunMoment&, const LogRecord& record) {
  if (record.find("loss") != nullptr) console_.print_line(breakdown_line(clock_.take_recent()));
}

}  // namespace tessera
