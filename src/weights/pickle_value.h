// The operations of pickles, and the values they leave on the stack.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weights/pickle.h"

namespace tessera::internal {

// The operations that torch.save (protocol 2) and pickle.dump (protocol 4 and 5) write, by Python's names.
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
  kNewObj = 0x81,
  kLong4 = 0x8b,
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kNewObjEx = 0x92,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96,
};

enum class Kind {
  kMark,
  kNone,
  kBool,
  kInt,
  kFloat,
  kText,
  kBytes,
  kGlobal,
  kTuple,
  kList,
  kDict,
  kStorage,
  kTensor,
  kObject
};

const char* name_of(Kind kind);  // "a tuple"

struct Value {
  Kind kind;
  std::int64_t number = 0;                  // kInt, kBool
  double real = 0;                          // kFloat
  std::string_view text{};                  // kText, kBytes; kGlobal and kObject: "module\nname" of it or of its class
  std::vector<Value*> items{};              // kTuple, kList (sets too); kDict: key, value, key, value...
  std::unique_ptr<PickledTensor> tensor{};  // kStorage, kTensor
  // kObject: the tuple it was made from; its attributes, a dict or a tuple of a dict and one of slots, or nothing.
  const Value *arguments = nullptr, *state = nullptr;
};

std::string dotted_name(std::string_view global);  // "torch.Size" of "torch\nSize"

// The tensors of a dict of tensors by name, in its order. Throws UsageError naming `origin` and the entry.
std::vector<PickledTensor> tensors_of(const Value& state_dict, const std::string& origin);

}  // namespace tessera::internal
