// What a run's console shows as text: log lines as transformers 4 prints them, {'loss': 4.895, 'epoch': 4.0}, and
// progress as tqdm writes it, a bar for terminals, "93/93 [02:02<00:00, 1.10s/it]" for files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/log_record.h"

namespace tessera {

// Values are printed as they are, except 'epoch', which transformers prints with two places (its records keep all), and
// 'total_flos', which it leaves out.
std::string format_log_line(const LogRecord& record);
// "Evaluation Metrics: {'exact_match': 0.0, 'f1': 0.0184947800077543}"
std::string format_evaluation_metrics(const LogRecord& record);

struct Progress {
  std::int64_t done = 0;
  std::int64_t total = 0;
  double seconds = 0;                         // since the start
  std::optional<double> rate = std::nullopt;  // steps per second; none: the mean since the start
  std::int64_t first = 0;                     // steps that were done before the start (a resumed run)
};

std::string format_progress_line(const Progress& progress);
// As wide as the terminal, or with a bar of ten characters if `num_columns` is 0. `postfix` follows the rate.
std::string format_progress_bar(const Progress& progress, int num_columns, const std::string& postfix = "");
std::string format_interval(double seconds);  // 02:05, 1:02:03

// Characters, not bytes: only the first byte of one in UTF-8 does not begin with the bits 10.
bool begins_character(char byte);
std::size_t num_characters(std::string_view text);

// tqdm's rate: both steps and seconds are smoothed; the newest has weight 0.3.
class SmoothedRate {
 public:
  void add(double num_steps, double seconds);
  std::optional<double> rate() const;

 private:
  double steps_ = 0, seconds_ = 0;
};

}  // namespace tessera
