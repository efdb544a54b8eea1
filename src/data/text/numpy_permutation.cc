#include "data/text/numpy_permutation.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace tessera {

namespace {

__extension__ using UInt128 = unsigned __int128;

constexpr std::size_t kPoolSize = 4;

// NumPy's SeedSequence: mixes a seed of any size into 128 bits and draws from them.
class SeedSequence {
 public:
  explicit SeedSequence(std::uint64_t seed) {
    // The seed's 32-bit words, lowest first; unused high words count as 0, as in NumPy.
    const std::array<std::uint32_t, kPoolSize> entropy = {static_cast<std::uint32_t>(seed),
                                                          static_cast<std::uint32_t>(seed >> 32), 0, 0};
    for (std::size_t i = 0; i < kPoolSize; ++i) pool_[i] = hashed(entropy[i]);
    for (std::size_t from = 0; from < kPoolSize; ++from) {
      for (std::size_t to = 0; to < kPoolSize; ++to) {
        if (from != to) pool_[to] = mixed(pool_[to], hashed(pool_[from]));
      }
    }
  }

  std::array<std::uint64_t, 4> draw() const {
    std::array<std::uint32_t, 8> words;
    std::uint32_t factor = 0x8b51f9dd;
    for (std::size_t i = 0; i < words.size(); ++i) {
      std::uint32_t word = pool_[i % kPoolSize] ^ factor;
      factor *= 0x58f38ded;
      word *= factor;
      words[i] = word ^ (word >> 16);
    }
    std::array<std::uint64_t, 4> result;
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] = words[2 * i] | (static_cast<std::uint64_t>(words[2 * i + 1]) << 32);
    }
    return result;
  }

 private:
  std::uint32_t hashed(std::uint32_t word) {
    word ^= factor_;
    factor_ *= 0x931e8875;
    word *= factor_;
    return word ^ (word >> 16);
  }

  static std::uint32_t mixed(std::uint32_t x, std::uint32_t y) {
    const std::uint32_t word = 0xca01f9dd * x - 0x4973f715 * y;
    return word ^ (word >> 16);
  }

  std::array<std::uint32_t, kPoolSize> pool_;
  std::uint32_t factor_ = 0x43b0d7e5;
};

// PCG64 (XSL-RR), with 32-bit numbers taken as NumPy takes them: the low half first, then the high half.
class Pcg64 {
 public:
  explicit Pcg64(std::uint64_t seed) {
    const auto words = SeedSequence(seed).draw();
    const auto pair = [&](std::size_t i) { return (static_cast<UInt128>(words[i]) << 64) | words[i + 1]; };
    increment_ = (pair(2) << 1) | 1;
    state_ = increment_ + pair(0);  // one step from 0, plus the seed
    step();
  }

  std::uint32_t next_32() {
    if (has_high_half_) {
      has_high_half_ = false;
      return high_half_;
    }
    const std::uint64_t word = next_64();
    high_half_ = static_cast<std::uint32_t>(word >> 32);
    has_high_half_ = true;
    return static_cast<std::uint32_t>(word);
  }

  // 0 to `highest`, equally likely: draws as many bits as `highest` has, again while the value is too large. (NumPy's
  // shuffle does this; its `integers` multiplies instead.)
  std::uint32_t up_to(std::uint32_t highest) {
    const std::uint32_t mask = std::numeric_limits<std::uint32_t>::max() >> std::countl_zero(highest);
    std::uint32_t value = next_32() & mask;
    while (value > highest) value = next_32() & mask;
    return value;
  }

 private:
  void step() {
    constexpr UInt128 kMultiplier = (static_cast<UInt128>(0x2360ED051FC65DA4) << 64) | 0x4385DF649FCCF645;
    state_ = state_ * kMultiplier + increment_;
  }

  std::uint64_t next_64() {
    step();
    const auto high = static_cast<std::uint64_t>(state_ >> 64), low = static_cast<std::uint64_t>(state_);
    return std::rotr(high ^ low, static_cast<int>(high >> 58));
  }

  UInt128 state_, increment_;
  std::uint32_t high_half_ = 0;
  bool has_high_half_ = false;
};

}  // namespace

std::vector<std::int64_t> rows_of(const Subset& subset, std::int64_t num_rows) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(num_rows));
  std::iota(rows.begin(), rows.end(), 0);
  if (subset.is_shuffled) {
    if (num_rows > std::numeric_limits<std::uint32_t>::max()) {
      throw Error(fmt::format("cannot shuffle {} rows as datasets does: at most 2^32 - 1 are supported", num_rows));
    }
    Pcg64 random(subset.seed);
    for (std::size_t i = rows.size(); i-- > 1;) std::swap(rows[i], rows[random.up_to(static_cast<std::uint32_t>(i))]);
  }
  if (subset.max_rows >= 0 && subset.max_rows < num_rows) rows.resize(static_cast<std::size_t>(subset.max_rows));
  return rows;
}

}  // namespace tessera
