// Log lines as transformers 4 prints them, written and read back: {'loss': 4.895, 'grad_norm': 81.5, 'epoch': 4.0}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/log_record.h"

namespace tessera {

// Values are printed as they are, but for 'epoch', of which transformers prints two places (its records keep all) and
// 'total_flos', which it leaves out.
std::string format_log_line(const LogRecord& record);
// "Evaluation Metrics: {'exact_match': 0.0, 'f1': 0.0184947800077543}"
std::string format_evaluation_metrics(const LogRecord& record);

struct LogLine {
  std::string label;  // "Evaluation Metrics", or empty
  LogRecord record;
};

// Reads a line of this form, whatever stands before it (a progress bar that shares the line, "Evaluation Metrics:").
// Nothing where the line holds no whole Python dict of plain values with text keys.
std::optional<LogLine> parse_log_line(std::string_view line);
// All such lines of a job's output, in order; progress bars and other text between them are passed over.
std::vector<LogLine> parse_log(std::string_view text);

// Lines that the trainer logs. Times and rates are rounded as transformers rounds them.
LogRecord train_log(double mean_loss, std::optional<double> grad_norm, double learning_rate, double epoch);
// Without an epoch where nothing is being trained.
LogRecord evaluation_log(const LogRecord& metrics, double seconds, std::int64_t num_samples, std::int64_t num_steps,
                         std::optional<double> epoch = {});
LogRecord train_summary(double seconds, double num_samples, std::int64_t num_steps, double train_loss, double epoch);

}  // namespace tessera
