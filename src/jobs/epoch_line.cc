#include "jobs/epoch_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/text.h"

namespace tessera {

namespace {

// Takes a line apart from left to right: fixed words, and numbers up to the next fixed word.
class Taker {
 public:
  explicit Taker(std::string_view line) : rest_(line) {}

  Taker& word(std::string_view expected) {
    ok_ = ok_ && rest_.starts_with(expected);
    if (ok_) rest_.remove_prefix(expected.size());
    return *this;
  }

  Taker& number(double& value) {
    const std::string_view digits = next();
    if (digits == "nan" || digits == "-nan") {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (digits == "inf" || digits == "-inf") {
      value = (digits[0] == '-' ? -1 : 1) * std::numeric_limits<double>::infinity();
    } else if (const auto real = parse_real(digits)) {
      value = *real;
    } else {
      ok_ = false;
    }
    return *this;
  }

  Taker& number(std::int64_t& value) {
    const auto whole = parse_integer(next());
    ok_ = ok_ && whole.has_value();
    value = whole.value_or(0);
    return *this;
  }

  bool ok() const { return ok_; }

 private:
  std::string_view next() {
    const std::size_t length = std::min(rest_.find_first_not_of("0123456789.+-einaf"), rest_.size());
    const std::string_view digits = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return digits;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace

std::string format_epoch_line(const EpochResult& result) {
  return fmt::format(
      "Epoch [{}/{}] LR: {:.6f} | Loss (train, val): {:.3f}, {:.3f} | Accuracy (train, val): {:.2f}%, {:.2f}% | "
      "Throughput: {:.1f} img/s",
      result.epoch, result.num_epochs, result.learning_rate, result.train_loss, result.val_loss, result.train_accuracy,
      result.val_accuracy, result.images_per_second);
}

std::optional<EpochResult> parse_epoch_line(std::string_view line) {
  const std::size_t begin = line.find("Epoch [");
  if (begin == std::string_view::npos) return std::nullopt;
  EpochResult result;
  Taker taker(line.substr(begin));
  taker.word("Epoch [").number(result.epoch).word("/").number(result.num_epochs);
  taker.word("] LR: ").number(result.learning_rate);
  taker.word(" | Loss (train, val): ").number(result.train_loss).word(", ").number(result.val_loss);
  taker.word(" | Accuracy (train, val): ").number(result.train_accuracy).word("%, ").number(result.val_accuracy);
  taker.word("% | Throughput: ").number(result.images_per_second).word(" img/s");
  if (!taker.ok()) return std::nullopt;
  return result;
}

LogRecord epoch_metrics(const EpochResult& result) {
  return {{"Loss/train", result.train_loss},
          {"Loss/val", result.val_loss},
          {"Accuracy/train", result.train_accuracy},
          {"Accuracy/val", result.val_accuracy},
          {"Throughput/images_per_sec", result.images_per_second},
          {"LR", result.learning_rate}};
}

std::string format_execution_time(double seconds) {
  return fmt::format("Total execution time = {:.3f} sec", seconds);
}

std::string format_tensor_memory(std::int64_t bytes) {
  return fmt::format("Max memory used by tensors = {} bytes", bytes);
}

}  // namespace tessera
