#include "listeners/console_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"

namespace tessera {

namespace {

constexpr double kNewestWeighs = 0.3;

std::optional<double> rate_of(const Progress& progress) {
  if (progress.rate) return progress.rate;
  if (progress.seconds <= 0) return std::nullopt;
  return static_cast<double>(progress.done - progress.first) / progress.seconds;
}

// " 1.10s/it" if a step takes more than a second, " 2.50it/s" otherwise; five characters at least, as tqdm pads them.
std::string rate_text(std::optional<double> rate) {
  if (!rate || *rate == 0) return "?it/s";
  if (1 / *rate > 1) return fmt::format("{:5.2f}s/it", 1 / *rate);
  return fmt::format("{:5.2f}it/s", *rate);
}

std::string counts_and_times(const Progress& progress, const std::string& rate, const std::string& postfix) {
  const std::optional<double> steps_per_second = rate_of(progress);
  const bool known = steps_per_second && *steps_per_second != 0;
  const std::string left =
      known ? format_interval(static_cast<double>(progress.total - progress.done) / *steps_per_second) : "?";
  return fmt::format("{}/{} [{}<{}, {}{}{}]", progress.done, progress.total, format_interval(progress.seconds), left,
                     rate, postfix.empty() ? "" : ", ", postfix);
}

// Eighths of a character: the last, partial one is drawn by U+258F (one eighth) to U+2589 (seven).
std::string bar_text(double fraction, int length) {
  constexpr int kParts = 8;
  const int num_parts = static_cast<int>(fraction * length * kParts);
  const int num_full = num_parts / kParts, partial = num_parts % kParts;
  std::string bar;
  for (int i = 0; i < num_full; ++i) bar += "█";
  if (num_full >= length) return bar;
  static const char* const kPartial[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  bar += kPartial[partial];
  return bar + std::string(static_cast<std::size_t>(length - num_full - 1), ' ');
}

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

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

std::size_t num_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string format_interval(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::abs(seconds));
  const std::string sign = seconds < 0 ? "-" : "";
  const std::int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}{}:{:02d}:{:02d}", sign, hours, minutes, whole % 60);
  return fmt::format("{}{:02d}:{:02d}", sign, minutes, whole % 60);
}

std::string format_progress_line(const Progress& progress) {
  return counts_and_times(progress, std::string(trim(rate_text(rate_of(progress)))), "");
}

std::string format_progress_bar(const Progress& progress, int num_columns, const std::string& postfix) {
  const double fraction =
      progress.total == 0 ? 0 : static_cast<double>(progress.done) / static_cast<double>(progress.total);
  const std::string left = fmt::format("{:3.0f}%|", fraction * 100);
  const std::string right = "| " + counts_and_times(progress, rate_text(rate_of(progress)), postfix);
  const int room = num_columns - static_cast<int>(num_characters(left + right));
  const std::string whole = left + bar_text(fraction, num_columns > 0 ? std::max(1, room) : 10) + right;
  if (num_columns == 0 || num_characters(whole) <= static_cast<std::size_t>(num_columns)) return whole;
  // A narrow terminal: cut, at a character.
  std::string cut;
  for (const char c : whole) {
    if (begins_character(c) && num_characters(cut) == static_cast<std::size_t>(num_columns)) break;
    cut += c;
  }
  return cut;
}

void SmoothedRate::add(double num_steps, double seconds) {
  steps_ = kNewestWeighs * num_steps + (1 - kNewestWeighs) * steps_;
  seconds_ = kNewestWeighs * seconds + (1 - kNewestWeighs) * seconds_;
}

// tqdm divides both by the same sum of weights: it cancels.
std::optional<double> SmoothedRate::rate() const {
  if (seconds_ <= 0) return std::nullopt;
  return steps_ / seconds_;
}

}  // namespace tessera
