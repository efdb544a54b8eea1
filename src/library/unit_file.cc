#include "library/unit_file.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <unordered_map>

#include "library/agreement.h"
#include "parallel/whole_state.h"

namespace tessera {
namespace {

// By the first name of each parameter, which is the one that its unit knows.
std::unordered_map<std::string, std::vector<std::string>> other_names_of(const torch::nn::Module& model) {
  std::unordered_map<const void*, std::string> first_name;
  std::unordered_map<std::string, std::vector<std::string>> others;
  for (const auto& item : model.named_parameters()) {
    const auto [place, is_new] = first_name.try_emplace(item.value().unsafeGetTensorImpl(), item.key());
    if (!is_new) others[place->second].push_back(item.key());
  }
  return others;
}

}  // namespace

std::vector<StateTensor> describe(Sharded::Impl& sharded, const std::vector<FlatState>& states) {
  const auto other_names = other_names_of(sharded.model);
  std::vector<StateTensor> tensors;
  for (const FlatUnit& unit : sharded.engine->units()) {
    for (const FlatState& state : states) {
      for (const FlatSlot& slot : unit.layout().slots()) {
        StateTensor& tensor = tensors.emplace_back(StateTensor{state.prefix + slot.name, {}, slot.shape});
        const auto others = other_names.find(slot.name);
        if (others == other_names.end()) continue;
        for (const std::string& name : others->second) tensor.other_names.push_back(state.prefix + name);
      }
    }
  }
  return tensors;
}

void write_units(Sharded::Impl& sharded, const std::vector<FlatState>& states, std::optional<StateWriter>& writer) {
  const at::NoGradGuard no_gradients;
  for (std::size_t index = 0; index < sharded.engine->units().size(); ++index) {
    FlatUnit& unit = sharded.engine->units()[index];
    for (const FlatState& state : states) {
      at::Tensor whole;
      sharded.guarded("saving", [&] {
        unit.settle_update();
        whole = gather_whole(unit, sharded.engine->groups(), state.part(index), sharded.world.device());
      });
      on_first_rank(sharded.world, [&] {
        for (const FlatSlot& slot : unit.layout().slots()) writer->add(slot_of(whole, slot));
      });
    }
  }
}

void read_units(Sharded::Impl& sharded, const std::vector<FlatState>& states,
                const std::optional<StateReader>& reader) {
  const at::NoGradGuard no_gradients;
  World& world = sharded.world;
  sharded.guarded("loading", [&] {
    for (std::size_t index = 0; index < sharded.engine->units().size(); ++index) {
      FlatUnit& unit = sharded.engine->units()[index];
      const FlatLayout& layout = unit.layout();
      if (layout.padded_numel() == 0) continue;
      for (const FlatState& state : states) {
        const at::Tensor whole = at::zeros({layout.padded_numel()}, at::dtype(at::kFloat).device(world.device()));
        for (const FlatSlot& slot : layout.slots()) {
          if (reader) slot_of(whole, slot).copy_(reader->tensor(state.prefix + slot.name));
        }
        if (world.size() > 1) world.all().broadcast(whole, 0, unit.name())->wait();
        unit.settle_update();
        state.replace(index, whole);
      }
    }
  });
}

}  // namespace tessera
