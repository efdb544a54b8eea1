#include "weights/damaged_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

namespace {

// A number's bits without its sign: from `least_bad` on they are no finite number, above `infinity` NaN.
struct Bits {
  int num_bytes;
  std::uint64_t least_bad, infinity;
};

constexpr std::pair<WeightType, Bits> kFloatingTypes[] = {
    {WeightType::kF8E4M3, {1, 0x7f, 0x7e}},  // has no infinity
    {WeightType::kF8E5M2, {1, 0x7c, 0x7c}},
    {WeightType::kF16, {2, 0x7c00, 0x7c00}},
    {WeightType::kBF16, {2, 0x7f80, 0x7f80}},
    {WeightType::kF32, {4, 0x7f800000, 0x7f800000}},
    {WeightType::kF64, {8, 0x7ff0000000000000, 0x7ff0000000000000}},
};

using TwoWords = std::uint64_t __attribute__((vector_size(16)));

// The pattern in each of the numbers that eight bytes hold.
std::uint64_t repeated(std::uint64_t pattern, int num_bytes) {
  std::uint64_t all = 0;
  for (int byte = 0; byte < 8; byte += num_bytes) all |= pattern << (8 * byte);
  return all;
}

// The bits of `least_bad` are all ones up to the sign: adding the lowest of them carries into the sign only where all
// are set, and never into the next number.
bool may_be_damaged(const Bits& bits, const char* bytes, std::int64_t num_bytes) {
  const std::uint64_t mask = repeated(bits.least_bad, bits.num_bytes);
  const std::uint64_t lowest = repeated(bits.least_bad & (~bits.least_bad + 1), bits.num_bytes);
  const std::uint64_t signs = repeated(std::uint64_t{1} << (8 * bits.num_bytes - 1), bits.num_bytes);
  constexpr std::int64_t kSize = sizeof(TwoWords), kAtOnce = 4 * kSize;
  const std::int64_t whole = num_bytes / kAtOnce * kAtOnce;
  std::array<char, kAtOnce> rest{};
  std::memcpy(rest.data(), bytes + whole, static_cast<std::size_t>(num_bytes - whole));
  // Four sums in turn, so that none waits for the last addition: four times as fast as word by word.
  TwoWords a{}, b{}, c{}, d{};
  const auto carries = [&](const char* from) {
    TwoWords words;
    std::memcpy(&words, from, kSize);
    return (words & mask) + lowest;
  };
  const auto look = [&](const char* from) {
    a |= carries(from);
    b |= carries(from + kSize);
    c |= carries(from + 2 * kSize);
    d |= carries(from + 3 * kSize);
  };
  for (std::int64_t at = 0; at < whole; at += kAtOnce) look(bytes + at);
  look(rest.data());
  const TwoWords all = a | b | c | d;
  return ((all[0] | all[1]) & signs) != 0;
}

}  // namespace

Damage damage_in(WeightType type, const char* bytes, std::int64_t numel) {
  const auto* row = std::ranges::find(kFloatingTypes, type, &std::pair<WeightType, Bits>::first);
  if (row == std::end(kFloatingTypes)) return Damage::kNone;
  const Bits* bits = &row->second;
  if (numel == 0 || !may_be_damaged(*bits, bytes, numel * bits->num_bytes)) return Damage::kNone;
  const std::uint64_t sign = std::uint64_t{1} << (8 * bits->num_bytes - 1);
  for (std::int64_t i = 0; i < numel; ++i) {
    std::uint64_t number = 0;
    std::memcpy(&number, bytes + i * bits->num_bytes, static_cast<std::size_t>(bits->num_bytes));
    if ((number & (sign - 1)) > bits->infinity) return Damage::kNan;
  }
  return Damage::kInfinite;
}

void DamageReport::look_at(const WeightEntry& entry, const char* bytes, std::int64_t numel, bool may_be_infinite) {
  const Damage damage = damage_in(entry.type, bytes, numel);
  if (damage == Damage::kNone || (damage == Damage::kInfinite && may_be_infinite)) return;
  const std::lock_guard lock(mutex_);
  if (found_.empty()) file_ = weights_.files()[entry.file]->path().string();
  Damage& worst = found_[entry.name];
  worst = std::max(worst, damage);
}

void DamageReport::finish() const {
  if (found_.empty()) return;
  std::vector<std::string> names;
  bool has_nan = false;
  for (const auto& [name, damage] : found_) {
    names.push_back(name);
    has_nan = has_nan || damage == Damage::kNan;
  }
  throw UsageError(
      fmt::format("{}: the weights are damaged: there are values that are {} in {}; copy the file again, or use a "
                  "model that was saved before its training diverged",
                  file_, has_nan ? "not numbers (NaN)" : "infinite", listed(names)));
}

}  // namespace tessera
