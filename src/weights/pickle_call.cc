#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "core/error.h"
#include "weights/pickle_machine.h"

namespace tessera::internal {

namespace {

// Many tensors may use one tuple, so these limits bound what a small file can expand to.
constexpr std::size_t kMaxDims = 64, kMaxKeyBytes = 64;

constexpr std::string_view kOrderedDict = "collections\nOrderedDict", kTensor = "torch._utils\n_rebuild_tensor_v2",
                           kParameter = "torch._utils\n_rebuild_parameter",
                           kParameterWithState = "torch._utils\n_rebuild_parameter_with_state",
                           kTensorOfType = "torch._tensor\n_rebuild_from_type_v2", kSize = "torch\nSize",
                           kDefaultDict = "collections\ndefaultdict";

// The packages that write checkpoints, and Python's modules of plain data. `__builtin__` and `copy_reg` are what
// protocol 2 calls builtins and copyreg.
constexpr std::string_view kInertPackages[] = {
    "torch",    "numpy",       "deepspeed", "transformers", "accelerate", "argparse", "enum",    "pathlib",
    "datetime", "collections", "_codecs",   "copyreg",      "types",      "copy_reg", "decimal", "uuid"};
constexpr std::string_view kInertBuiltins[] = {"set",   "frozenset", "bytearray", "complex", "object", "list", "dict",
                                               "tuple", "int",       "float",     "str",     "bool",   "bytes"};

bool is_inert_name(std::string_view module, std::string_view name) {
  const auto is_one_of = [](std::string_view word, const auto& words) {
    return std::find(std::begin(words), std::end(words), word) != std::end(words);
  };
  if (module == "builtins" || module == "__builtin__") return is_one_of(name, kInertBuiltins);
  return is_one_of(module.substr(0, module.find('.')), kInertPackages);
}

Value value_of(Kind kind, PickledTensor tensor) {
  return {.kind = kind, .tensor = std::make_unique<PickledTensor>(std::move(tensor))};
}

std::vector<std::int64_t> whole_numbers(const Value& tuple, const PickleSite& site) {
  if (tuple.items.size() > kMaxDims) site.refuse(fmt::format("a tensor of more than {} dimensions", kMaxDims));
  std::vector<std::int64_t> numbers;
  for (const Value* item : tuple.items) {
    if (item->kind != Kind::kInt) site.refuse(fmt::format("a size that is {}", name_of(item->kind)));
    numbers.push_back(item->number);
  }
  return numbers;
}

// (storage, offset, size, stride, requires_grad, backward_hooks[, metadata])
Value tensor_of(const std::vector<Value*>& arguments, const PickleSite& site) {
  if (arguments.size() < 6 || arguments.size() > 7 || arguments[0]->kind != Kind::kStorage ||
      arguments[1]->kind != Kind::kInt || arguments[2]->kind != Kind::kTuple || arguments[3]->kind != Kind::kTuple) {
    site.refuse("a tensor with arguments that torch does not write");
  }
  if (arguments.size() == 7 && arguments[6]->kind != Kind::kNone && !is_empty_dict(*arguments[6])) {
    site.refuse("a tensor with metadata (conjugate, negative or the like), which is not supported");
  }
  PickledTensor tensor = *arguments[0]->tensor;
  tensor.offset = arguments[1]->number;
  tensor.shape = whole_numbers(*arguments[2], site);
  tensor.strides = whole_numbers(*arguments[3], site);
  return value_of(Kind::kTensor, std::move(tensor));
}

// (data, requires_grad, backward_hooks[, state]): the data is the tensor.
Value parameter_of(const std::vector<Value*>& arguments, const PickleSite& site) {
  if (arguments.size() < 3 || arguments.size() > 4 || arguments[0]->kind != Kind::kTensor) {
    site.refuse("a parameter without a tensor");
  }
  return value_of(Kind::kTensor, *arguments[0]->tensor);
}

// (function, type, arguments, state): a tensor with attributes in Python, which are not needed.
Value tensor_of_type(const std::vector<Value*>& arguments, const PickleSite& site) {
  if (arguments.size() != 4 || arguments[0]->kind != Kind::kGlobal || arguments[2]->kind != Kind::kTuple) {
    site.refuse("a tensor with arguments that torch does not write");
  }
  const std::string_view function = arguments[0]->text;
  if (function == kTensor) return tensor_of(arguments[2]->items, site);
  if (function == kParameter) return parameter_of(arguments[2]->items, site);
  site.refuse(fmt::format("a tensor that {} makes", dotted_name(function)));
}

// torch.Size((2, 3)): the tuple.
Value size_of(const std::vector<Value*>& arguments, const PickleSite& site) {
  if (arguments.size() != 1 || arguments[0]->kind != Kind::kTuple) site.refuse("a size that is no tuple");
  if (arguments[0]->items.size() > kMaxDims) site.refuse(fmt::format("a size of more than {} dimensions", kMaxDims));
  return {.kind = Kind::kTuple, .items = arguments[0]->items};
}

}  // namespace

void PickleSite::refuse(const std::string& what) const {
  throw UsageError(fmt::format("{}: broken pickle at byte {}: {}", origin, at, what));
}

bool is_known_global(std::string_view module, std::string_view name, PickleScope scope) {
  if (scope == PickleScope::kCheckpoint) return is_inert_name(module, name);
  return (module == "collections" && name == "OrderedDict") ||
         (module == "torch._utils" && (name == "_rebuild_tensor_v2" || name == "_rebuild_parameter")) ||
         (module == "torch" && type_of_storage_name(name).has_value());
}

Value understood_call(const Value& function, const Value& arguments, const PickleSite& site) {
  const std::vector<Value*>& items = arguments.items;
  if (function.text == kOrderedDict) {
    if (!items.empty()) site.refuse("an OrderedDict with arguments");
    return {.kind = Kind::kDict};
  }
  if (function.text == kDefaultDict) return {.kind = Kind::kDict};
  if (function.text == kTensor) return tensor_of(items, site);
  if (function.text == kTensorOfType) return tensor_of_type(items, site);
  if (function.text == kParameter || function.text == kParameterWithState) return parameter_of(items, site);
  if (function.text == kSize) return size_of(items, site);
  const std::string_view name = function.text.substr(function.text.find('\n') + 1);
  if (function.text.starts_with("torch\n") && type_of_storage_name(name)) site.refuse("a call to a storage type");
  return {.kind = Kind::kObject, .text = function.text, .arguments = &arguments};
}

// ('storage', torch.FloatStorage, '0', 'cpu', 1048576), and before torch 1.6 also which part of another storage it is,
// or None
Value understood_storage(const Value& id, const PickleSite& site) {
  const std::vector<Value*>& items = id.items;
  if (id.kind != Kind::kTuple || items.size() < 5 || items.size() > 6 || !is_text(*items[0], "storage") ||
      items[1]->kind != Kind::kGlobal || items[2]->kind != Kind::kText || items[4]->kind != Kind::kInt) {
    site.refuse("a persistent id that is not a storage");
  }
  if (items.size() == 6 && items[5]->kind != Kind::kNone) {
    site.refuse("a storage that is part of another, which is not supported");
  }
  const std::string_view global = items[1]->text;
  const auto type = type_of_storage_name(global.substr(global.find('\n') + 1));
  if (!type) site.refuse("a storage without a type");
  if (items[2]->text.size() > kMaxKeyBytes) site.refuse("a storage with a key that is too long");
  PickledTensor storage;
  storage.type = *type;
  storage.storage_key = std::string(items[2]->text);
  storage.storage_numel = items[4]->number;
  return value_of(Kind::kStorage, std::move(storage));
}

bool is_text(const Value& value, std::string_view text) {
  return value.kind == Kind::kText && value.text == text;
}

bool is_empty_dict(const Value& value) {
  return value.kind == Kind::kDict && value.items.empty();
}

}  // namespace tessera::internal
