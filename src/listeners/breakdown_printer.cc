#include "listeners/breakdown_printer.h"

#include <fmt/format.h>

namespace tessera {

std::string breakdown_line(const PartSeconds& mean) {
  std::string line = "time per step (ms)";
  for (std::size_t i = 0; i < kNumStepParts; ++i) {
    line += fmt::format(" | {}: {:.2f}", step_part_names()[i], 1000 * mean[i]);
  }
  return line;
}

// Only lines of training have a loss.
void BreakdownPrinter::on_log(const RunMoment&, const LogRecord& record) {
  if (record.find("loss") == nullptr) return;
  const StepClock::Recent recent = clock_.take_recent();
  if (recent.num_steps > 0) console_.print_line(breakdown_line(recent.mean));
}

}  // namespace tessera
