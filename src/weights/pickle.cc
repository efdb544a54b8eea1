#include "weights/pickle.h"

#include <fmt/format.h>

#include <unordered_set>

#include "core/error.h"
#include "core/text.h"
#include "weights/pickle_machine.h"

namespace tessera {

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

}  // namespace tessera
