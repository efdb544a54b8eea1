// What the pickle reader works with: operations, values, and whether a text is UTF-8.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "checkpoint/pickle.h"

namespace tessera::internal {

// The operations that torch.save writes, by Python's names.
enum PickleOp : unsigned char {
  kMark = '(',
  kStop = '.',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = 0x8a,
  kNone = 'N',
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kBinFloat = 'G',
  kBinUnicode = 'X',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBuild = 'b',
  kGlobal = 'c',
  kEmptyDict = '}',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kAppend = 'a',
  kAppends = 'e',
  kSetItem = 's',
  kSetItems = 'u',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kProto = 0x80,
};

enum class Kind { kMark, kNone, kBool, kInt, kFloat, kText, kGlobal, kTuple, kList, kDict, kStorage, kTensor };

inline const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kMark:
      return "a mark";
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return "a truth value";
    case Kind::kInt:
      return "a whole number";
    case Kind::kFloat:
      return "a fraction";
    case Kind::kText:
      return "a text";
    case Kind::kGlobal:
      return "a name";
    case Kind::kTuple:
      return "a tuple";
    case Kind::kList:
      return "a list";
    case Kind::kDict:
      return "a dict";
    case Kind::kStorage:
      return "a storage";
    case Kind::kTensor:
      return "a tensor";
  }
  return "unknown";
}

// One tuple may be used by many tensors, so these bound what a small file can make of itself.
constexpr std::size_t kMaxDims = 64, kMaxKeyBytes = 64;

struct Value {
  Kind kind;
  std::int64_t number = 0;                  // kInt
  std::string_view text{};                  // kText: a part of the pickle; kGlobal: "module\nname", likewise
  std::vector<Value*> items{};              // kTuple, kList; kDict: key, value, key, value...
  std::unique_ptr<PickledTensor> tensor{};  // kStorage, kTensor
};

inline bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(at < text.size() ? text[at] : 0); };
    const unsigned first = byte(i);
    const std::size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
    if (length == 0) return false;
    std::uint32_t point = length == 1 ? first : first & (0x7fu >> length);
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return false;
      point = point << 6 | (byte(i + k) & 0x3f);
    }
    constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (point < kLeast[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return false;
    i += length;
  }
  return true;
}

}  // namespace tessera::internal
