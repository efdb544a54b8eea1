// Random texts for tests; tools/references/random_text.py makes the same ones in Python and says what they hold.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/tokenizer/characters.h"

namespace tessera::internal {

class RandomText {
 public:
  static std::string make(std::uint64_t seed, std::uint64_t index) {
    RandomText maker(seed * 1000003 + index);
    maker.fill(index % 4 == 3);
    return std::move(maker.text_);
  }

 private:
  explicit RandomText(std::uint64_t seed) : state_(seed) {}

  // splitmix64
  std::uint64_t below(std::uint64_t n) {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return (z ^ (z >> 31)) % n;
  }

  std::string character(char32_t first, char32_t last) {
    char32_t point = first + static_cast<char32_t>(below(last - first + 1));
    if (point >= 0xD800 && point <= 0xDFFF) point -= 0x1000;
    std::string text;
    append_utf8(text, point);
    return text;
  }

  void fill(bool broken) {
    const std::uint64_t length = below(50) == 0 ? below(400) : below(40);
    for (std::uint64_t i = 0; i < length; ++i) add(broken);
  }

  void add(bool broken) {
    static constexpr std::string_view kPalette = "  \t\n\r'.,!?()|-[]{}abcdeslmrtvABCDEST0123456789";
    static constexpr char32_t kSpaces[] = {0x9,    0xB,    0xC,    0x85,   0xA0,   0x1680, 0x180E, 0x2000, 0x200A,
                                           0x200B, 0x200C, 0x200D, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF};
    static constexpr char32_t kRanges[][2] = {
        {0x300, 0x36F},   {0x1100, 0x11FF}, {0xAC00, 0xD7A3}, {0x4E00, 0x9FFF},   {0x3040, 0x30FF},   {0x900, 0x97F},
        {0x600, 0x6FF},   {0x590, 0x5FF},   {0xE00, 0xE7F},   {0x1F300, 0x1F6FF}, {0x1D400, 0x1D7FF}, {0xF900, 0xFAFF},
        {0xFB00, 0xFFEF}, {0x2000, 0x2BFF}, {0x1E00, 0x1FFF}, {0xAB0, 0x10FF}};
    static constexpr std::string_view kWords[] = {"<s>",
                                                  "</s>",
                                                  "<pad>",
                                                  "<|endoftext|>",
                                                  "'ll",
                                                  "'re ",
                                                  "don't",
                                                  "the ",
                                                  " The",
                                                  "yesterday",
                                                  "Yesterday ",
                                                  "\u017f",
                                                  "\u212a",
                                                  "\u0130",
                                                  "\u00df",
                                                  "\ufb01",
                                                  "\u1e9b\u0323",
                                                  "A\u030a",
                                                  "\u1100\u1161\u11a8",
                                                  "\U0001f468\u200d\U0001f469\u200d\U0001f467",
                                                  "[MASK]",
                                                  " [MASK]  ",
                                                  "word",
                                                  "\u2581",
                                                  "<0x41>",
                                                  "1234567",
                                                  "\r\n\r\n",
                                                  "   ",
                                                  "hello world",
                                                  "\u00e9",
                                                  "e\u0301",
                                                  "\u09b0\u09cd\u0995"};
    const std::uint64_t kind = below(16);
    if (kind < 5) {
      text_ += kPalette[below(kPalette.size())];
    } else if (kind < 7) {
      text_ += character(0x20, 0x7E);
    } else if (kind == 7) {
      text_ += character(0xA0, 0x52F);
    } else if (kind == 8) {
      text_ += character(0, 0xFFFF);
    } else if (kind == 9) {
      const auto plane = static_cast<char32_t>(below(17) << 16);
      text_ += character(plane, plane + 0xFFFF);
    } else if (kind == 10) {
      append_utf8(text_, kSpaces[below(std::size(kSpaces))]);
    } else if (kind < 13) {
      const char32_t* range = kRanges[below(std::size(kRanges))];
      text_ += character(range[0], range[1]);
    } else if (kind == 13) {
      text_ += kWords[below(std::size(kWords))];
    } else if (kind == 14) {
      const std::string unit = character(0x20, 0x2FF);
      for (std::uint64_t i = 1 + below(8); i > 0; --i) text_ += unit;
    } else if (broken) {
      add_broken();
    } else {
      text_ += static_cast<char>('0' + below(10));
    }
  }

  void add_broken() {
    const std::string whole = character(0x80, 0x10FFFF);
    if (below(2) == 0) {
      text_ += whole.substr(0, 1 + below(whole.size()));
    } else {
      text_ += static_cast<char>(0x80 + below(0x80));
    }
  }

  std::uint64_t state_;
  std::string text_;
};

}  // namespace tessera::internal
