// Pickled state dicts: no code runs, and what is accepted survives a round trip through our own pickle. The same bytes
// as a checkpoint's pickle: every value of the tree is one that the machine made.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/error.h"
#include "weights/pickle.h"
#include "weights/pickle_machine.h"

namespace {

// Without recursion: a small file may nest deeply.
void walk(const tessera::internal::Value& root) {
  std::vector<const tessera::internal::Value*> open{&root};
  std::unordered_set<const tessera::internal::Value*> seen;
  while (!open.empty()) {
    const tessera::internal::Value* value = open.back();
    open.pop_back();
    if (value == nullptr || !seen.insert(value).second) continue;
    if (value->kind == tessera::internal::Kind::kMark) std::abort();
    if (value->kind == tessera::internal::Kind::kDict && value->items.size() % 2 != 0) std::abort();
    open.insert(open.end(), value->items.begin(), value->items.end());
    open.push_back(value->arguments);
    open.push_back(value->state);
  }
}

void read_as_checkpoint(std::string_view pickle) {
  const std::string origin = "fuzz.pkl";
  try {
    tessera::internal::PickleMachine machine(pickle, origin, tessera::PickleScope::kCheckpoint);
    walk(machine.run());
  } catch (const tessera::Error&) {  // a refusal, with its reason
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view pickle(reinterpret_cast<const char*>(data), size);
  read_as_checkpoint(pickle);
  try {
    const auto tensors = tessera::parse_pickled_state_dict(pickle, "fuzz.pkl");
    const auto again = tessera::parse_pickled_state_dict(tessera::compose_pickled_state_dict(tensors), "composed");
    if (again.size() != tensors.size()) std::abort();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (again[i].name != tensors[i].name || again[i].type != tensors[i].type || again[i].shape != tensors[i].shape ||
          again[i].strides != tensors[i].strides || again[i].offset != tensors[i].offset ||
          again[i].storage_numel != tensors[i].storage_numel || again[i].storage_key != tensors[i].storage_key) {
        std::abort();
      }
    }
  } catch (const tessera::Error&) {  // a refusal, with its reason
  }
  return 0;
}
