// The stack machine that runs a pickle. It builds values and calls nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weights/pickle_value.h"

namespace tessera::internal {

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
  double take_real();
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
  void make_object();
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

}  // namespace tessera::internal
