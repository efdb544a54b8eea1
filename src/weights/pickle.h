// The part of Python's pickle format that torch's files need; nothing in it is ever executed.
//
// A pickle is a program for a stack machine that may call any Python function. This reader knows the operations that
// picklers write and a few functions, which it interprets rather than calls. What else a pickle may name depends on
// what it should hold:
//   - A state dict (kStateDict): only `collections.OrderedDict`, `torch._utils._rebuild_tensor_v2` and
//     `torch._utils._rebuild_parameter`. Everything else is refused by name.
//   - A checkpoint (kCheckpoint): also any name of the packages that write checkpoints, and Python's plain data classes
//     (pickle_call.cc). An object of such a class is a record of its attributes, a call of such a function an object
//     without any: inert, carried, and refused by its dotted name if it stands where a value is needed. Names of all
//     other packages (os.system) are refused at once, wherever they stand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights/weight_entry.h"

namespace tessera {

enum class PickleScope { kStateDict, kCheckpoint };

// A tensor as the pickle describes it: a window into a storage. Sizes are unchecked: the caller knows the storage.
struct PickledTensor {
  std::string name;
  WeightType type = WeightType::kF32;
  std::string storage_key;         // the record "data/<key>"
  std::int64_t storage_numel = 0;  // as the pickle claims
  std::int64_t offset = 0;         // in elements
  std::vector<std::int64_t> shape, strides;
};

// The tensors of a pickled dict of tensors by name, in its order. Throws UsageError naming `origin` and, by its dotted
// Python name, what is not supported. Time and memory are linear in the text.
std::vector<PickledTensor> parse_pickled_state_dict(std::string_view pickle, const std::string& origin);

// The pickle that torch.save would write for these, an OrderedDict. A storage is identified by its key and may be
// shared.
std::string compose_pickled_state_dict(const std::vector<PickledTensor>& tensors);

}  // namespace tessera
