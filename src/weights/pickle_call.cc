#include "weights/pickle_call.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "core/error.h"

namespace tessera::internal {

namespace {

// Many tensors may use one tuple, so these limits bound what a small file can expand to.
constexpr std::size_t kMaxDims = 64, kMaxKeyBytes = 64;

constexpr std::string_view kOrderedDict = "collections\nOrderedDict", kTensor = "torch._utils\n_rebuild_tensor_v2",
                           kParameter = "torch._utils\n_rebuild_parameter";

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

}  // namespace

void PickleSite::refuse(const std::string& what) const {
  throw UsageError(fmt::format("{}: broken pickle at byte {}: {}", origin, at, what));
}

bool is_known_global(std::string_view module, std::string_view name) {
  return (module == "collections" && name == "OrderedDict") ||
         (module == "torch._utils" && (name == "_rebuild_tensor_v2" || name == "_rebuild_parameter")) ||
         (module == "torch" && type_of_storage_name(name).has_value());
}

Value understood_call(const Value& function, const std::vector<Value*>& arguments, const PickleSite& site) {
  if (function.text == kOrderedDict) {
    if (!arguments.empty()) site.refuse("an OrderedDict with arguments");
    return {.kind = Kind::kDict};
  }
  if (function.text == kTensor) return tensor_of(arguments, site);
  if (function.text == kParameter) {
    // (data, requires_grad, backward_hooks): the data is the tensor.
    if (arguments.size() != 3 || arguments[0]->kind != Kind::kTensor) site.refuse("a parameter without a tensor");
    return value_of(Kind::kTensor, *arguments[0]->tensor);
  }
  site.refuse("a call to a storage type");
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
