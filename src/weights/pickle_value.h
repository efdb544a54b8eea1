// The operations of pickles, and the values they leave on the stack.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "weights/pickle.h"

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

const char* name_of(Kind kind);  // "a tuple"

struct Value {
  Kind kind;
  std::int64_t number = 0;                  // kInt, kBool
  std::string_view text{};                  // kText: a part of the pickle; kGlobal: "module\nname", likewise
  std::vector<Value*> items{};              // kTuple, kList; kDict: key, value, key, value...
  std::unique_ptr<PickledTensor> tensor{};  // kStorage, kTensor
};

// The tensors of a dict of tensors by name, in its order. Throws UsageError naming `origin` and the entry.
std::vector<PickledTensor> tensors_of(const Value& state_dict, const std::string& origin);

}  // namespace tessera::internal
