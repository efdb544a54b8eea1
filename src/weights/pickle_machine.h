// The stack machine that runs a pickle: its operations, the values it builds, and the few functions it interprets. It
// calls nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weights/pickle.h"

namespace tessera::internal {

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

// Call run() for each of the consecutive pickles in `text`. Values live as long as the machine, their texts as long as
// `text`. Time and memory are linear in what is read.
class PickleMachine {
 public:
  PickleMachine(std::string_view text, const std::string& origin, PickleScope scope = PickleScope::kStateDict)
      : text_(text), origin_(origin), scope_(scope) {}

  // The value that the next pickle produces. Throws UsageError naming the origin and what was found.
  const Value& run();
  std::size_t num_read_bytes() const { return at_; }

 private:
  [[noreturn]] void refuse_here(const std::string& what) const;

  std::string_view take(std::uint64_t num_bytes);
  std::uint64_t take_number(int num_bytes);
  std::string_view take_line();

  void push(Value* value) { stack_.push_back(value); }
  void push(Value value);
  void push_int(std::int64_t number) { push({.kind = Kind::kInt, .number = number}); }
  void push_long(std::uint64_t num_bytes);
  void push_text(std::uint64_t num_bytes);
  void push_bytes(std::uint64_t num_bytes) { push({.kind = Kind::kBytes, .text = take(num_bytes)}); }
  void push_global();
  void push_stacked_global();
  void check_global(std::string_view module, std::string_view name) const;
  void push_tuple(int size);
  Value* pop();
  Value* top();
  std::vector<Value*> pop_to_mark();

  void step(unsigned char op);
  void check_protocol(std::uint64_t protocol) const;
  void reduce();
  void build();
  void append(const std::vector<Value*>& items, Kind kind);
  void get(std::uint64_t index);
  void put(std::uint64_t index) { memo_[index] = top(); }

  std::string_view text_;
  const std::string& origin_;
  PickleScope scope_;
  std::size_t at_ = 0;
  Value mark_{.kind = Kind::kMark}, none_{.kind = Kind::kNone}, true_{.kind = Kind::kBool, .number = 1},
      false_{.kind = Kind::kBool};
  // Owns the others, so that values may refer to each other in any way, even in cycles.
  std::deque<Value> values_;
  std::deque<std::string> names_;  // that are not one piece of the text
  std::vector<Value*> stack_;
  std::unordered_map<std::uint64_t, Value*> memo_;
};

// The place of an error: which pickle and where in it.
struct PickleSite {
  const std::string& origin;
  std::size_t at;
  [[noreturn]] void refuse(const std::string& what) const;
};

// Whether a pickle of this scope may name module.name.
bool is_known_global(std::string_view module, std::string_view name, PickleScope scope);

// What the function (a known kGlobal) would return for this tuple of arguments; for one that is not interpreted, an
// object. Throws UsageError naming the site.
Value understood_call(const Value& function, const Value& arguments, const PickleSite& site);

// What torch's persistent id stands for: a storage.
Value understood_storage(const Value& id, const PickleSite& site);

bool is_text(const Value& value, std::string_view text);
bool is_empty_dict(const Value& value);

}  // namespace tessera::internal
