// NaN and Inf among the values of a weight file. Trained weights have none: they are signs of damage, or of a run that
// diverged before it saved. Values are looked at when they are read anyway.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "weights/weight_entry.h"
#include "weights/weights.h"

namespace tessera {

enum class Damage : std::uint8_t { kNone, kInfinite, kNan };  // the worst of several values

// `bytes` need not be aligned. kNone for types that hold only finite numbers.
Damage damage_in(WeightType type, const char* bytes, std::int64_t numel);

// Collects the damaged tensors of a file, from several threads, for one message that names them all.
class DamageReport {
 public:
  explicit DamageReport(const Weights& weights) : weights_(weights) {}

  // A part of the entry's values. `may_be_infinite`: for a buffer such as an attention mask, which may hold -inf.
  void look_at(const WeightEntry& entry, const char* bytes, std::int64_t numel, bool may_be_infinite);
  // Throws UsageError naming the file and its damaged tensors, if there are any.
  void finish() const;

 private:
  const Weights& weights_;
  std::mutex mutex_;
  std::map<std::string, Damage> found_;  // by name
  std::string file_;                     // of the first that was found
};

}  // namespace tessera
