#include "checkpoint/pickle.h"

#include <fmt/format.h>

#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "checkpoint/pickle_value.h"
#include "core/error.h"
#include "core/text.h"

namespace tessera {

namespace {

using internal::is_utf8;
using internal::Kind;
using internal::kMaxDims;
using internal::kMaxKeyBytes;
using internal::name_of;
using internal::Value;

class Reader {
 public:
  Reader(std::string_view pickle, const std::string& origin) : pickle_(pickle), origin_(origin) {}

  // The value that the pickle leaves behind; it lives as long as the reader.
  const Value& run() {
    while (true) {
      const auto op = static_cast<unsigned char>(take(1)[0]);
      if (op == internal::kStop) break;
      step(op);
    }
    return *pop();
  }

  [[noreturn]] void refuse(const std::string& what) const { throw UsageError(fmt::format("{}: {}", origin_, what)); }

 private:
  [[noreturn]] void refuse_here(const std::string& what) const {
    refuse(fmt::format("broken pickle at byte {}: {}", at_, what));
  }

  std::string_view take(std::uint64_t num_bytes) {
    if (num_bytes > pickle_.size() - at_) refuse_here("it ends in the middle");
    const std::string_view taken = pickle_.substr(at_, num_bytes);
    at_ += num_bytes;
    return taken;
  }
  std::uint64_t take_number(int num_bytes) {
    const std::string_view bytes = take(num_bytes);
    std::uint64_t value = 0;
    for (int i = num_bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
  }
  std::string_view take_line() {
    const std::size_t end = pickle_.find('\n', at_);
    if (end == std::string_view::npos) refuse_here("a name without an end");
    const std::string_view line = take(end - at_);
    take(1);
    return line;
  }

  Value* make(Value value) {
    values_.push_back(std::move(value));
    return &values_.back();
  }
  void push(Value* value) { stack_.push_back(value); }
  void push(Value value) { push(make(std::move(value))); }
  Value* pop() {
    if (stack_.empty()) refuse_here("its stack is empty");
    Value* value = stack_.back();
    stack_.pop_back();
    if (value->kind == Kind::kMark) refuse_here("a mark where a value should be");
    return value;
  }
  Value* top() {
    Value* value = pop();
    push(value);
    return value;
  }
  std::vector<Value*> pop_to_mark() {
    std::size_t mark = stack_.size();
    while (mark > 0 && stack_[mark - 1]->kind != Kind::kMark) --mark;
    if (mark == 0) refuse_here("no mark on its stack");
    std::vector<Value*> values(stack_.begin() + static_cast<std::ptrdiff_t>(mark), stack_.end());
    stack_.resize(mark - 1);
    return values;
  }
  void push_tuple(int size) {
    std::vector<Value*> items(size);
    for (int i = size; i-- > 0;) items[i] = pop();
    push({.kind = Kind::kTuple, .items = std::move(items)});
  }

  void step(unsigned char op) {
    using enum internal::PickleOp;
    switch (op) {
      case kProto:
        return check_protocol(take_number(1));
      case kMark:
        return push(&mark_);
      case kNone:
        return push(&none_);
      case kNewTrue:
      case kNewFalse:
        return push(&truth_);
      case kBinInt:
        return push_int(static_cast<std::int32_t>(take_number(4)));
      case kBinInt1:
        return push_int(static_cast<std::int64_t>(take_number(1)));
      case kBinInt2:
        return push_int(static_cast<std::int64_t>(take_number(2)));
      case kLong1:
        return push_int(take_long());
      case kBinFloat:
        take(8);
        return push(&fraction_);
      case kBinUnicode:
        return push_text();
      case kGlobal:
        return push_global();
      case kBinPersId:
        return push_storage();
      case kReduce:
        return reduce();
      case kBuild:
        return build();
      case kEmptyDict:
        return push({.kind = Kind::kDict});
      case kEmptyList:
        return push({.kind = Kind::kList});
      case kEmptyTuple:
        return push({.kind = Kind::kTuple});
      case kTuple:
        return push({.kind = Kind::kTuple, .items = pop_to_mark()});
      case kTuple1:
        return push_tuple(1);
      case kTuple2:
        return push_tuple(2);
      case kTuple3:
        return push_tuple(3);
      case kAppend:
        return append({pop()}, Kind::kList);
      case kAppends:
        return append(pop_to_mark(), Kind::kList);
      case kSetItem: {
        Value* value = pop();
        Value* key = pop();
        return append({key, value}, Kind::kDict);
      }
      case kSetItems:
        return append(pop_to_mark(), Kind::kDict);
      case kBinGet:
        return get(take_number(1));
      case kLongBinGet:
        return get(take_number(4));
      case kBinPut:
        return put(take_number(1));
      case kLongBinPut:
        return put(take_number(4));
      default:
        break;
    }
    refuse_here(
        fmt::format("operation 0x{:02x}, which no state dict of torch needs; nothing in a pickle is executed", op));
  }

  void check_protocol(std::uint64_t protocol) const {
    if (protocol != 2)
      refuse(fmt::format("pickle protocol {}; torch.save's own, 2, is the one that is read", protocol));
  }

  void push_int(std::int64_t number) { push({.kind = Kind::kInt, .number = number}); }

  std::int64_t take_long() {
    const int num_bytes = static_cast<int>(take_number(1));
    if (num_bytes > 8) refuse_here(fmt::format("a whole number of {} bytes; sizes take 8 at most", num_bytes));
    if (num_bytes == 0) return 0;
    const std::uint64_t bits = take_number(num_bytes);
    const int unused = 64 - 8 * num_bytes;
    return static_cast<std::int64_t>(bits << unused) >> unused;  // two's complement, the sign extended
  }

  void push_text() {
    const std::string_view text = take(take_number(4));
    if (!is_utf8(text)) refuse_here("a text that is not UTF-8");
    push({.kind = Kind::kText, .text = text});
  }

  // Only looked at here, and refused at once when it is none of ours, so that the message names it.
  void push_global() {
    const std::size_t begin = at_;
    const std::string_view module = take_line();
    const std::string_view name = take_line();
    const bool known = (module == "collections" && name == "OrderedDict") ||
                       (module == "torch._utils" && (name == "_rebuild_tensor_v2" || name == "_rebuild_parameter")) ||
                       (module == "torch" && type_of_storage_name(name).has_value());
    if (!known) {
      refuse(
          fmt::format("it needs {}.{}, which is no part of a plain state dict; nothing in a pickle is executed. "
                      "Save the tensors alone: torch.save(model.state_dict(), FILE)",
                      printable(module), printable(name)));
    }
    push({.kind = Kind::kGlobal, .text = pickle_.substr(begin, module.size() + 1 + name.size())});
  }

  // ('storage', torch.FloatStorage, '0', 'cpu', 1048576)
  void push_storage() {
    const Value& id = *pop();
    if (id.kind != Kind::kTuple || id.items.size() != 5 || !is_text(*id.items[0], "storage") ||
        id.items[1]->kind != Kind::kGlobal || id.items[2]->kind != Kind::kText || id.items[4]->kind != Kind::kInt) {
      refuse_here("a persistent id that is no storage");
    }
    const std::string_view global = id.items[1]->text;
    const auto type = type_of_storage_name(global.substr(global.find('\n') + 1));
    if (!type) refuse_here("a storage without a type");
    if (id.items[2]->text.size() > kMaxKeyBytes) refuse_here("a storage with too long a key");
    PickledTensor storage;
    storage.type = *type;
    storage.storage_key = std::string(id.items[2]->text);
    storage.storage_numel = id.items[4]->number;
    push({.kind = Kind::kStorage, .tensor = std::make_unique<PickledTensor>(std::move(storage))});
  }

  static bool is_text(const Value& value, std::string_view text) {
    return value.kind == Kind::kText && value.text == text;
  }

  void reduce() {
    const Value& arguments = *pop();
    const Value& function = *pop();
    if (function.kind != Kind::kGlobal || arguments.kind != Kind::kTuple) refuse_here("a call of what is no function");
    if (function.text == "collections\nOrderedDict") {
      if (!arguments.items.empty()) refuse_here("an OrderedDict with arguments");
      push({.kind = Kind::kDict});
    } else if (function.text == "torch._utils\n_rebuild_tensor_v2") {
      rebuild_tensor(arguments.items);
    } else if (function.text == "torch._utils\n_rebuild_parameter") {
      // (data, requires_grad, backward_hooks): the data is the tensor.
      if (arguments.items.size() != 3 || arguments.items[0]->kind != Kind::kTensor)
        refuse_here("a parameter of no tensor");
      push(arguments.items[0]);
    } else {
      refuse_here("a call of a storage's type");
    }
  }

  // (storage, offset, size, stride, requires_grad, backward_hooks[, metadata])
  void rebuild_tensor(const std::vector<Value*>& arguments) {
    if (arguments.size() < 6 || arguments.size() > 7 || arguments[0]->kind != Kind::kStorage ||
        arguments[1]->kind != Kind::kInt || arguments[2]->kind != Kind::kTuple || arguments[3]->kind != Kind::kTuple) {
      refuse_here("a tensor with other arguments than torch writes");
    }
    if (arguments.size() == 7 && !(arguments[6]->kind == Kind::kNone || is_empty_dict(*arguments[6]))) {
      refuse_here("a tensor with metadata (conjugate, negative or the like), which is not read");
    }
    if (arguments[2]->items.size() > kMaxDims || arguments[3]->items.size() > kMaxDims) {
      refuse_here(fmt::format("a tensor of more than {} dimensions", kMaxDims));
    }
    PickledTensor tensor = *arguments[0]->tensor;
    tensor.offset = arguments[1]->number;
    tensor.shape = whole_numbers(*arguments[2]);
    tensor.strides = whole_numbers(*arguments[3]);
    push({.kind = Kind::kTensor, .tensor = std::make_unique<PickledTensor>(std::move(tensor))});
  }

  static bool is_empty_dict(const Value& value) { return value.kind == Kind::kDict && value.items.empty(); }

  std::vector<std::int64_t> whole_numbers(const Value& tuple) const {
    std::vector<std::int64_t> numbers;
    for (const Value* item : tuple.items) {
      if (item->kind != Kind::kInt) refuse_here(fmt::format("a size that is {}", name_of(item->kind)));
      numbers.push_back(item->number);
    }
    return numbers;
  }

  // torch hangs `_metadata` (versions of modules) on the dict of a module's state: known, and of no use here.
  void build() {
    const Value& state = *pop();
    const Value& object = *top();
    const bool only_metadata =
        state.kind == Kind::kDict && state.items.size() == 2 && is_text(*state.items[0], "_metadata");
    if (object.kind != Kind::kDict || !(only_metadata || is_empty_dict(state))) {
      refuse_here("attributes set on an object that is no state dict");
    }
  }

  void append(std::vector<Value*> items, Kind kind) {
    Value* container = top();
    if (container->kind != kind)
      refuse_here(fmt::format("items for {}, which takes none such", name_of(container->kind)));
    if (kind == Kind::kDict && items.size() % 2 != 0) refuse_here("a key without a value");
    container->items.insert(container->items.end(), items.begin(), items.end());
  }

  void get(std::uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) refuse_here(fmt::format("memo {} is read before it is written", index));
    push(found->second);
  }
  void put(std::uint64_t index) { memo_[index] = top(); }

  std::string_view pickle_;
  const std::string& origin_;
  std::size_t at_ = 0;
  Value mark_{.kind = Kind::kMark}, none_{.kind = Kind::kNone}, truth_{.kind = Kind::kBool},
      fraction_{.kind = Kind::kFloat};  // what these values are never matters
  // Owns the others, so that values may refer to each other in any way, in circles too.
  std::deque<Value> values_;
  std::vector<Value*> stack_;
  std::unordered_map<std::uint64_t, Value*> memo_;
};

}  // namespace

std::vector<PickledTensor> parse_pickled_state_dict(std::string_view pickle, const std::string& origin) {
  Reader reader(pickle, origin);
  const Value& root = reader.run();
  constexpr const char* kAdvice = "expected a plain state dict, as torch.save(model.state_dict(), FILE) writes it";
  if (root.kind != Kind::kDict) reader.refuse(fmt::format("it holds {}; {}", name_of(root.kind), kAdvice));
  std::vector<PickledTensor> tensors;
  std::unordered_set<std::string_view> names;
  for (std::size_t i = 0; i < root.items.size(); i += 2) {
    const Value &key = *root.items[i], &value = *root.items[i + 1];
    if (key.kind != Kind::kText) reader.refuse(fmt::format("a key is {}, not a text; {}", name_of(key.kind), kAdvice));
    if (value.kind != Kind::kTensor) {
      reader.refuse(
          fmt::format("entry '{}' is {}, not a tensor; {}", printable(key.text), name_of(value.kind), kAdvice));
    }
    if (!names.insert(key.text).second) reader.refuse(fmt::format("tensor '{}' stands twice", printable(key.text)));
    tensors.push_back(*value.tensor);
    tensors.back().name = std::string(key.text);
  }
  return tensors;
}

}  // namespace tessera
