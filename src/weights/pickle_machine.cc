#include "weights/pickle_machine.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace tessera::internal {

namespace {

bool is_utf8(std::string_view text) {
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

}  // namespace

const char* name_of(Kind kind) {
  // In the order of the enumeration.
  static constexpr const char* kNames[] = {"a mark",   "None",      "a boolean", "a whole number", "a fraction",
                                           "a string", "bytes",     "a name",    "a tuple",        "a list",
                                           "a dict",   "a storage", "a tensor",  "an object"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string dotted_name(std::string_view global) {
  const std::size_t end = global.find('\n');
  return end == std::string_view::npos ? printable(global)
                                       : printable(global.substr(0, end)) + "." + printable(global.substr(end + 1));
}

const Value& PickleMachine::run() {
  stack_.clear();
  memo_.clear();
  while (true) {
    const auto op = static_cast<unsigned char>(take(1)[0]);
    if (op == '.') return *pop();  // STOP
    step(op);
  }
}

void PickleMachine::refuse_here(const std::string& what) const {
  PickleSite{origin_, at_}.refuse(what);
}

std::string_view PickleMachine::take(std::uint64_t num_bytes) {
  if (num_bytes > text_.size() - at_) refuse_here("it ends too early");
  const std::string_view taken = text_.substr(at_, num_bytes);
  at_ += num_bytes;
  return taken;
}

std::uint64_t PickleMachine::take_number(int num_bytes) {
  return little_endian(take(num_bytes));
}

std::string_view PickleMachine::take_line() {
  const std::size_t end = text_.find('\n', at_);
  if (end == std::string_view::npos) refuse_here("a name without an end");
  const std::string_view line = take(end - at_);
  take(1);
  return line;
}

void PickleMachine::push(Value value) {
  values_.push_back(std::move(value));
  push(&values_.back());
}

// A larger one than any size is a seed or the like: carried, but no number here.
void PickleMachine::push_long(std::uint64_t num_bytes) {
  if (num_bytes > 8 && scope_ == PickleScope::kCheckpoint) {
    take(num_bytes);
    return push({.kind = Kind::kObject, .text = "builtins\nint"});
  }
  if (num_bytes > 8) refuse_here(fmt::format("a whole number of {} bytes; sizes take 8 at most", num_bytes));
  if (num_bytes == 0) return push_int(0);
  const std::uint64_t bits = take_number(static_cast<int>(num_bytes));
  const int unused = 64 - 8 * static_cast<int>(num_bytes);
  push_int(static_cast<std::int64_t>(bits << unused) >> unused);  // two's complement, sign-extended
}

void PickleMachine::push_text(std::uint64_t num_bytes) {
  const std::string_view text = take(num_bytes);
  if (!is_utf8(text)) refuse_here("a string that is not UTF-8");
  push({.kind = Kind::kText, .text = text});
}

// Refused at once if it is not a known one, before anything can use it, so that the message names it.
void PickleMachine::check_global(std::string_view module, std::string_view name) const {
  if (is_known_global(module, name, scope_)) return;
  if (scope_ == PickleScope::kCheckpoint) {
    throw UsageError(fmt::format("{}: it needs {}.{}, which no checkpoint needs; nothing in a pickle is executed",
                                 origin_, printable(module), printable(name)));
  }
  throw UsageError(
      fmt::format("{}: it needs {}.{}, which is not part of a plain state dict; nothing in a pickle is executed. "
                  "Save only the tensors: torch.save(model.state_dict(), FILE)",
                  origin_, printable(module), printable(name)));
}

void PickleMachine::push_stacked_global() {
  constexpr std::size_t kMaxNameBytes = 256;  // it is copied, and many may use one text
  const Value &name = *pop(), &module = *pop();
  if (name.kind != Kind::kText || module.kind != Kind::kText) refuse_here("a name that is no string");
  if (name.text.size() + module.text.size() > kMaxNameBytes) refuse_here("a name that is too long");
  check_global(module.text, name.text);
  names_.push_back(std::string(module.text) + "\n" + std::string(name.text));
  push({.kind = Kind::kGlobal, .text = names_.back()});
}

void PickleMachine::push_global() {
  const std::size_t begin = at_;
  const std::string_view module = take_line();
  const std::string_view name = take_line();
  check_global(module, name);
  push({.kind = Kind::kGlobal, .text = text_.substr(begin, module.size() + 1 + name.size())});
}

void PickleMachine::push_tuple(int size) {
  std::vector<Value*> items(size);
  for (int i = size; i-- > 0;) items[i] = pop();
  push({.kind = Kind::kTuple, .items = std::move(items)});
}

Value* PickleMachine::pop() {
  if (stack_.empty()) refuse_here("its stack is empty");
  Value* value = stack_.back();
  stack_.pop_back();
  if (value->kind == Kind::kMark) refuse_here("a mark where a value should be");
  return value;
}

Value* PickleMachine::top() {
  Value* value = pop();
  push(value);
  return value;
}

std::vector<Value*> PickleMachine::pop_to_mark() {
  std::size_t mark = stack_.size();
  while (mark > 0 && stack_[mark - 1]->kind != Kind::kMark) --mark;
  if (mark == 0) refuse_here("no mark on its stack");
  std::vector<Value*> values(stack_.begin() + static_cast<std::ptrdiff_t>(mark), stack_.end());
  stack_.resize(mark - 1);
  return values;
}

void PickleMachine::step(unsigned char op) {
  switch (op) {
    case 0x80:  // PROTO
      return check_protocol(take_number(1));
    case '(':  // MARK
      return push(&mark_);
    case 'N':  // NONE
      return push(&none_);
    case 0x88:  // NEWTRUE
      return push(&true_);
    case 0x89:  // NEWFALSE
      return push(&false_);
    case 'J':  // BININT
      return push_int(static_cast<std::int32_t>(take_number(4)));
    case 'K':  // BININT1
      return push_int(static_cast<std::int64_t>(take_number(1)));
    case 'M':  // BININT2
      return push_int(static_cast<std::int64_t>(take_number(2)));
    case 0x8a:  // LONG1
      return push_long(take_number(1));
    case 0x8b:  // LONG4
      return push_long(take_number(4));
    case 'G':  // BINFLOAT
      return push({.kind = Kind::kFloat, .real = std::bit_cast<double>(__builtin_bswap64(take_number(8)))});
    case 0x8c:  // SHORT_BINUNICODE
      return push_text(take_number(1));
    case 'X':  // BINUNICODE
      return push_text(take_number(4));
    case 0x8d:  // BINUNICODE8
      return push_text(take_number(8));
    case 'C':  // SHORT_BINBYTES
      return push_bytes(take_number(1));
    case 'B':  // BINBYTES
      return push_bytes(take_number(4));
    case 0x8e:  // BINBYTES8
    case 0x96:  // BYTEARRAY8
      return push_bytes(take_number(8));
    case 'c':  // GLOBAL
      return push_global();
    case 0x93:  // STACK_GLOBAL
      return push_stacked_global();
    case 'Q':  // BINPERSID
      return push(understood_storage(*pop(), {origin_, at_}));
    case 'R':   // REDUCE
    case 0x81:  // NEWOBJ
      return reduce();
    case 0x92:  // NEWOBJ_EX
      pop();    // arguments by name, which are not kept
      return reduce();
    case 'b':  // BUILD
      return build();
    case '}':  // EMPTY_DICT
      return push({.kind = Kind::kDict});
    case ']':   // EMPTY_LIST
    case 0x8f:  // EMPTY_SET
      return push({.kind = Kind::kList});
    case 0x91:  // FROZENSET
      return push({.kind = Kind::kList, .items = pop_to_mark()});
    case ')':  // EMPTY_TUPLE
      return push({.kind = Kind::kTuple});
    case 't':  // TUPLE
      return push({.kind = Kind::kTuple, .items = pop_to_mark()});
    case 0x85:  // TUPLE1
      return push_tuple(1);
    case 0x86:  // TUPLE2
      return push_tuple(2);
    case 0x87:  // TUPLE3
      return push_tuple(3);
    case 'a':  // APPEND
      return append({pop()}, Kind::kList);
    case 'e':   // APPENDS
    case 0x90:  // ADDITEMS
      return append(pop_to_mark(), Kind::kList);
    case 's': {  // SETITEM
      Value* value = pop();
      Value* key = pop();
      return append({key, value}, Kind::kDict);
    }
    case 'u':  // SETITEMS
      return append(pop_to_mark(), Kind::kDict);
    case 'h':  // BINGET
      return get(take_number(1));
    case 'j':  // LONG_BINGET
      return get(take_number(4));
    case 'q':  // BINPUT
      return put(take_number(1));
    case 'r':  // LONG_BINPUT
      return put(take_number(4));
    case 0x94:  // MEMOIZE
      return put(memo_.size());
    case 0x95:  // FRAME
      take(8);  // how much a reader may buffer
      return;
    default:
      refuse_here(
          fmt::format("operation 0x{:02x}, which no torch state dict needs; nothing in a pickle is executed", op));
  }
}

void PickleMachine::check_protocol(std::uint64_t protocol) const {
  if (protocol == 2 || (scope_ == PickleScope::kCheckpoint && protocol >= 2 && protocol <= 5)) return;
  throw UsageError(fmt::format("{}: pickle protocol {}; only torch.save's own, 2, is supported", origin_, protocol));
}

void PickleMachine::reduce() {
  const Value& arguments = *pop();
  const Value& function = *pop();
  if (function.kind != Kind::kGlobal || arguments.kind != Kind::kTuple) refuse_here("a call to a non-function");
  push(understood_call(function, arguments, {origin_, at_}));
}

// Attributes. torch attaches `_metadata` (versions of modules) to a module's state dict: known, and not needed here.
void PickleMachine::build() {
  const Value& state = *pop();
  Value& object = *top();
  if (object.kind == Kind::kObject) {
    object.state = &state;
    return;
  }
  if (object.kind == Kind::kDict && scope_ == PickleScope::kCheckpoint) return;
  const bool only_metadata =
      state.kind == Kind::kDict && state.items.size() == 2 && is_text(*state.items[0], "_metadata");
  if (object.kind != Kind::kDict || !(only_metadata || is_empty_dict(state))) {
    refuse_here("attributes set on an object that is not a state dict");
  }
}

void PickleMachine::append(const std::vector<Value*>& items, Kind kind) {
  Value* container = top();
  if (container->kind == Kind::kObject) return;  // a list or dict of a class of its own: inert
  if (container->kind != kind) {
    refuse_here(fmt::format("items for {}, which cannot take them", name_of(container->kind)));
  }
  if (kind == Kind::kDict && items.size() % 2 != 0) refuse_here("a key without a value");
  container->items.insert(container->items.end(), items.begin(), items.end());
}

void PickleMachine::get(std::uint64_t index) {
  const auto found = memo_.find(index);
  if (found == memo_.end()) refuse_here(fmt::format("memo {} is read before it is written", index));
  push(found->second);
}

}  // namespace tessera::internal
