#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "kernels/optimizers/optimizer.h"

namespace tessera {

extern const OptimizerKind kAdamW, kAdam, kSgd, kLion;

const std::vector<const OptimizerKind*>& optimizers() {
  static const std::vector<const OptimizerKind*> all = {&kAdamW, &kAdam, &kSgd, &kLion};
  return all;
}

const OptimizerKind& optimizer_of(std::string_view word) {
  for (const OptimizerKind* each : optimizers()) {
    if (each->name == word || std::find(each->words.begin(), each->words.end(), word) != each->words.end()) {
      return *each;
    }
  }
  const auto meant = nearest(word, optimizer_words());
  throw UsageError(fmt::format("optimizer '{}' is not known{}; optimizers: {}", printable(word, 40),
                               meant ? fmt::format(", did you mean '{}'?", *meant) : "",
                               join(optimizer_words(), ", ")));
}

std::vector<std::string> optimizer_words() {
  std::vector<std::string> words;
  for (const OptimizerKind* each : optimizers()) words.insert(words.end(), each->words.begin(), each->words.end());
  return words;
}

void check_number(const char* name, double value, bool is_right, const char* allowed) {
  if (is_right && std::isfinite(value)) return;
  throw UsageError(fmt::format("optimizer: {} is {}: expected {}", name, value, allowed));
}

}  // namespace tessera
