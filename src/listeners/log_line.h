// Log lines as transformers 4 prints them, written and read back: {'loss': 4.895, 'grad_norm': 81.5, 'epoch': 4.0}
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/log_record.h"

namespace tessera {

// Values are printed as they are, except 'epoch', which transformers prints with two places (its records keep all), and
// 'total_flos', which it leaves out.
std::string format_log_line(const LogRecord& record);
// "Evaluation Metrics: {'exact_match': 0.0, 'f1': 0.0184947800077543}"
std::string format_evaluation_metrics(const LogRecord& record);

struct LogLine {
  std::string label;  // "Evaluation Metrics", or empty
  LogRecord record;
};

// Reads a line of this form, whatever precedes it (a progress bar that shares the line, "Evaluation Metrics:"). None if
// the line holds no complete Python dict of plain values with string keys.
std::optional<LogLine> parse_log_line(std::string_view line);
// All such lines of a job's output, in order; progress bars and other text between them are skipped.
std::vector<LogLine> parse_log(std::string_view text);

}  // namespace tessera
