// Random choices that are the same on every machine: the standard fixes the numbers of std::mt19937_64, but not what
// its distributions and std::shuffle make of them.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <utility>

namespace tessera {

class SeededRandom {
 public:
  // Several numbers, such as a seed and an epoch, make one sequence.
  template <typename... Numbers>
  explicit SeededRandom(Numbers... numbers) {
    std::seed_seq sequence{word(numbers, 0)..., word(numbers, 32)...};
    engine_.seed(sequence);
  }

  // 0 to limit - 1, each as likely as the others but for 1 in 2^64 / limit.
  std::uint64_t below(std::uint64_t limit) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(Wide{engine_()} * limit >> 64);
  }

  // 0 <= share < 1, with 53 bits.
  double share() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

  template <typename T>
  void shuffle(std::span<T> values) {
    for (std::size_t left = values.size(); left > 1; --left) std::swap(values[left - 1], values[below(left)]);
  }

 private:
  static std::uint32_t word(std::uint64_t number, int shift) { return static_cast<std::uint32_t>(number >> shift); }

  std::mt19937_64 engine_;
};

}  // namespace tessera
