// The line that a run on images prints for each epoch, written and read back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/log_record.h"

namespace tessera {

struct EpochResult {
  std::int64_t epoch = 0;  // 1 is the first
  std::int64_t num_epochs = 0;
  double learning_rate = 0;
  double train_loss = 0, val_loss = 0;
  double train_accuracy = 0, val_accuracy = 0;  // percent
  double images_per_second = 0;
};

// Epoch [3/3] LR: 0.001000 | Loss (train, val): 5.149, 5.664 | Accuracy (train, val): 2.16%, 0.98% | Throughput: 704.9
// img/s
std::string format_epoch_line(const EpochResult& result);
// None if the line does not have this form. Text before it is skipped.
std::optional<EpochResult> parse_epoch_line(std::string_view line);

// The same under the names that reports use: Loss/train, Accuracy/val, Throughput/images_per_sec, LR.
LogRecord epoch_metrics(const EpochResult& result);

// The two lines at the end: Total execution time = 123.456 sec, Max memory used by tensors = N bytes
std::string format_execution_time(double seconds);
std::string format_tensor_memory(std::int64_t bytes);

}  // namespace tessera
