#include "weights/pickle.h"

#include <fmt/format.h>

#include <unordered_set>

#include "core/error.h"
#include "core/text.h"
#include "weights/pickle_machine.h"

namespace tessera {

namespace {

// Pickle's protocol 2: operations, each a letter with what belongs to it. No memo, since nothing written is worth
// sharing.
constexpr const char* kNewOrderedDict = "ccollections\nOrderedDict\n)R";

std::string pickled(std::int64_t value) {
  if (value >= 0 && value < 256) return "K" + little_endian(value, 1);
  if (value >= 0 && value < 65536) return "M" + little_endian(value, 2);
  if (value >= INT32_MIN && value <= INT32_MAX) return "J" + little_endian(value, 4);
  return "\x8a\x08" + little_endian(value, 8);
}

std::string pickled(const std::string& text) {
  return "X" + little_endian(text.size(), 4) + text;
}

std::string pickled(const std::vector<std::int64_t>& tuple) {
  std::string text = "(";
  for (const std::int64_t value : tuple) text += pickled(value);
  return text + "t";
}

// _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks)
std::string pickled(const PickledTensor& tensor) {
  const std::string_view storage = storage_name(tensor.type);
  if (storage.empty()) {
    throw UsageError(fmt::format("tensor '{}': {} cannot be written to a torch .bin file; write safetensors",
                                 printable(tensor.name), torch_name(tensor.type)));
  }
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + pickled("storage") + fmt::format("ctorch\n{}\n", storage) +
         pickled(tensor.storage_key) + pickled("cpu") + pickled(tensor.storage_numel) + "tQ" + pickled(tensor.offset) +
         pickled(tensor.shape) + pickled(tensor.strides) + "\x89" + kNewOrderedDict + "tR";
}

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
  std::string text = std::string("\x80\x02") + kNewOrderedDict + "(";
  for (const PickledTensor& tensor : tensors) text += pickled(tensor.name) + pickled(tensor);
  return text + "u.";
}

}  // namespace tessera
