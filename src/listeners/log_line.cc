#include "listeners/log_line.h"

namespace tessera {

namespace {

std::string format_dict(const LogRecord& record) {
  std::string text = "{";
  for (const auto& [key, value] : record.entries()) {
    if (text.size() > 1) text += ", ";
    text += python_repr(std::string_view(key)) + ": " + python_repr(value);
  }
  return text + "}";
}

}  // namespace

std::string format_log_line(const LogRecord& record) {
  LogRecord shown;
  for (const auto& [key, value] : record.entries()) {
    if (key == "total_flos") continue;
    const double* number = std::get_if<double>(&value);
    shown.set(key, key == "epoch" && number != nullptr ? LogValue(python_round(*number, 2)) : value);
  }
  return format_dict(shown);
}

std::string format_evaluation_metrics(const LogRecord& record) {
  return "Evaluation Metrics: " + format_dict(record);
}

}  // namespace tessera
