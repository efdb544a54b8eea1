// Runs of bits in an array of 64-bit words, read and written whole words at a time. Bit i is bit i % 64 of word i / 64.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace tessera {

constexpr std::int64_t num_words_of_bits(std::int64_t num_bits) {
  return (num_bits + 63) / 64;
}

// The lowest `count` bits; 0 to 64.
constexpr std::uint64_t low_bits(std::int64_t count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

inline bool bit_at(const std::uint64_t* words, std::int64_t place) {
  return (words[place / 64] >> (place % 64) & 1) != 0;
}

// Up to 64 bits from any place on, the first one lowest; the rest of the word is 0. Reads no word without such bits.
inline std::uint64_t bits_from(const std::uint64_t* words, std::int64_t begin, std::int64_t count) {
  const std::int64_t shift = begin % 64;
  std::uint64_t bits = words[begin / 64] >> shift;
  if (shift + count > 64) bits |= words[begin / 64 + 1] << (64 - shift);
  return bits & low_bits(count);
}

inline std::int64_t num_bits_set(const std::uint64_t* words, std::int64_t begin, std::int64_t count) {
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < count; i += 64) {
    sum += std::popcount(bits_from(words, begin + i, std::min<std::int64_t>(64, count - i)));
  }
  return sum;
}

// Bits added one run after the other.
class BitWriter {
 public:
  // The lowest `count` bits of a word; 0 to 64.
  void add(std::uint64_t bits, std::int64_t count) {
    if (count == 0) return;
    bits &= low_bits(count);
    const std::int64_t shift = size_ % 64;
    if (shift == 0) {
      words_.push_back(bits);
    } else {
      words_.back() |= bits << shift;
      if (shift + count > 64) words_.push_back(bits >> (64 - shift));
    }
    size_ += count;
  }
  void add_ones(std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += 64) add(~std::uint64_t{0}, std::min<std::int64_t>(64, count - i));
  }

  std::int64_t size() const { return size_; }
  const std::vector<std::uint64_t>& words() const { return words_; }

 private:
  std::vector<std::uint64_t> words_;
  std::int64_t size_ = 0;
};

}  // namespace tessera
