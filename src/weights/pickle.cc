#include "weights/pickle.h"

#include <fmt/format.h>

#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "weights/pickle_machine.h"

namespace tessera {

namespace {

// Pickle's protocol 2; no memo, since nothing written is worth sharing.
class Writer {
 public:
  void op(unsigned char code) { text_ += static_cast<char>(code); }

  void number(std::int64_t value) {
    if (value >= 0 && value < 256) {
      op(internal::kBinInt1);
      little_endian(value, 1);
    } else if (value >= 0 && value < 65536) {
      op(internal::kBinInt2);
      little_endian(value, 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
      op(internal::kBinInt);
      little_endian(value, 4);
    } else {
      op(internal::kLong1);
      little_endian(8, 1);
      little_endian(value, 8);
    }
  }

  void text(std::string_view value) {
    op(internal::kBinUnicode);
    little_endian(static_cast<std::int64_t>(value.size()), 4);
    text_ += value;
  }

  void global(std::string_view module, std::string_view name) {
    op(internal::kGlobal);
    text_ += module;
    text_ += '\n';
    text_ += name;
    text_ += '\n';
  }

  void tuple(const std::vector<std::int64_t>& values) {
    op(internal::kMark);
    for (const std::int64_t value : values) number(value);
    op(internal::kTuple);
  }

  void ordered_dict() {
    global("collections", "OrderedDict");
    op(internal::kEmptyTuple);
    op(internal::kReduce);
  }

  // _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks)
  void tensor(const PickledTensor& tensor) {
    const auto storage = storage_name(tensor.type);
    if (!storage) {
      throw UsageError("tensor '" + printable(tensor.name) + "': " + std::string(torch_name(tensor.type)) +
                       " cannot be written to a torch .bin file; write safetensors");
    }
    global("torch._utils", "_rebuild_tensor_v2");
    op(internal::kMark);
    op(internal::kMark);
    text("storage");
    global("torch", *storage);
    text(tensor.storage_key);
    text("cpu");
    number(tensor.storage_numel);
    op(internal::kTuple);
    op(internal::kBinPersId);
    number(tensor.offset);
    tuple(tensor.shape);
    tuple(tensor.strides);
    op(internal::kNewFalse);
    ordered_dict();
    op(internal::kTuple);
    op(internal::kReduce);
  }

  std::string take() { return std::move(text_); }

 private:
  void little_endian(std::int64_t value, int num_bytes) {
    for (int i = 0; i < num_bytes; ++i) text_ += static_cast<char>(value >> (8 * i) & 0xff);
  }

  std::string text_;
};

}  // namespace

std::vector<PickledTensor> parse_pickled_state_dict(std::string_view pickle, const std::string& origin) {
  internal::PickleMachine machine(pickle, origin);
  return internal::tensors_of(machine.run(), origin);
}

namespace internal {

std::vector<PickledTensor> tensors_of(const Value& state_dict, const std::string& origin) {
  constexpr const char* kAdvice = "expected a plain state dict, as torch.save(model.state_dict(), FILE) writes it";
  const auto refuse = [&](const std::string& what) { throw UsageError(fmt::format("{}: {}", origin, what)); };
  if (state_dict.kind != Kind::kDict) refuse(fmt::format("it holds {}; {}", name_of(state_dict.kind), kAdvice));
  std::vector<PickledTensor> tensors;
  std::unordered_set<std::string_view> names;
  for (std::size_t i = 0; i < state_dict.items.size(); i += 2) {
    const Value &key = *state_dict.items[i], &value = *state_dict.items[i + 1];
    if (key.kind != Kind::kText) refuse(fmt::format("a key is {}, not a string; {}", name_of(key.kind), kAdvice));
    const std::string name = printable(key.text);
    if (value.kind == Kind::kDict) {  // what training scripts save: {'model': ..., 'optimizer': ..., 'epoch': ...}
      refuse(
          fmt::format("entry '{0}' is a dict, not a tensor: this is a checkpoint of a training script; "
                      "save only the model's part: torch.save(torch.load(FILE)['{0}'], NEW_FILE)",
                      name));
    }
    if (value.kind != Kind::kTensor) {
      refuse(fmt::format("entry '{}' is {}, not a tensor; {}", name, name_of(value.kind), kAdvice));
    }
    if (!names.insert(key.text).second) refuse(fmt::format("tensor '{}' occurs twice", name));
    tensors.push_back(*value.tensor);
    tensors.back().name = std::string(key.text);
  }
  return tensors;
}

}  // namespace internal

std::string compose_pickled_state_dict(const std::vector<PickledTensor>& tensors) {
  Writer writer;
  writer.op(internal::kProto);
  writer.op(2);  // the protocol
  writer.ordered_dict();
  writer.op(internal::kMark);
  for (const PickledTensor& tensor : tensors) {
    writer.text(tensor.name);
    writer.tensor(tensor);
  }
  writer.op(internal::kSetItems);
  writer.op(internal::kStop);
  return writer.take();
}

}  // namespace tessera
