#include "state/unit_file.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <unordered_map>
#include <utility>

#include "comm/exchange.h"
#include "parallel/flat_unit.h"
#include "weights/checkpoint_index.h"

namespace tessera {

std::unordered_map<std::string, std::vector<std::string>> other_names_of(const torch::nn::Module& model) {
  std::unordered_map<const void*, std::string> first_name;
  std::unordered_map<std::string, std::vector<std::string>> others;
  for (const auto& item : model.named_parameters()) {
    const auto [place, is_new] = first_name.try_emplace(item.value().unsafeGetTensorImpl(), item.key());
    if (!is_new) others[place->second].push_back(item.key());
  }
  return others;
}

FlatState parameters_of(Engine& engine) {
  std::vector<FlatUnit>& units = engine.units();
  return {"", [&units](std::size_t index) { return units[index].split_master(); },
          [&units](std::size_t index, const at::Tensor& whole) { units[index].replace_values(whole); },
          [&units](std::size_t index, const at::Tensor& part) { units[index].replace_part(part); }};
}

std::vector<FlatState> optimizer_states_of(Engine& engine, const ShardedOptimizer& optimizer) {
  std::vector<FlatState> states;
  for (std::size_t i = 0; i < optimizer.states().size(); ++i) {
    const auto part = [&optimizer, i](std::size_t index) { return kernels::SplitFloats{optimizer.state(index, i)}; };
    states.push_back({optimizer.states()[i].name + ".", part,
                      [&engine, part](std::size_t index, const at::Tensor& whole) {
                        take_part(engine.units()[index], part(index).values, whole);
                      },
                      [part](std::size_t index, const at::Tensor& values) { part(index).values.copy_(values); }});
  }
  return states;
}

FlatState checkpoint_parameters(Engine& engine) {
  FlatState state = parameters_of(engine);
  state.prefix = kModelPrefix;
  return state;
}

std::vector<FlatState> checkpoint_states(Engine& engine, const ShardedOptimizer& optimizer) {
  std::vector<FlatState> states{checkpoint_parameters(engine)};
  for (FlatState& state : optimizer_states_of(engine, optimizer)) {
    state.prefix = kOptimizerPrefix + state.prefix;
    states.push_back(std::move(state));
  }
  return states;
}

std::vector<StateTensor> describe(const SpreadModel& spread, const std::vector<FlatState>& states) {
  const auto other_names = other_names_of(spread.model);
  std::vector<StateTensor> tensors;
  for (const FlatUnit& unit : spread.engine.units()) {
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

void write_units(const SpreadModel& spread, const std::vector<FlatState>& states, std::optional<StateWriter>& writer) {
  const at::NoGradGuard no_gradients;
  for (std::size_t index = 0; index < spread.engine.units().size(); ++index) {
    FlatUnit& unit = spread.engine.units()[index];
    for (const FlatState& state : states) {
      at::Tensor whole;
      spread.guarded("saving", [&] {
        unit.finish_update();
        whole = gather_whole(unit, spread.engine.groups(), state.part(index).joined(), spread.world.device());
      });
      on_first_rank(spread.world, [&] {
        for (const FlatSlot& slot : unit.layout().slots()) writer->add(view_of(whole, slot));
      });
    }
  }
}

void read_units(const SpreadModel& spread, const std::vector<FlatState>& states,
                const std::optional<StateReader>& reader) {
  const at::NoGradGuard no_gradients;
  World& world = spread.world;
  spread.guarded("loading", [&] {
    for (std::size_t index = 0; index < spread.engine.units().size(); ++index) {
      FlatUnit& unit = spread.engine.units()[index];
      const FlatLayout& layout = unit.layout();
      if (layout.padded_numel() == 0) continue;
      for (const FlatState& state : states) {
        const at::Tensor whole = at::zeros({layout.padded_numel()}, at::dtype(at::kFloat).device(world.device()));
        for (const FlatSlot& slot : layout.slots()) {
          if (reader) view_of(whole, slot).copy_(reader->tensor(state.prefix + slot.name));
        }
        if (world.size() > 1) world.all().broadcast(whole, 0, unit.name())->wait();
        unit.finish_update();
        state.replace(index, whole);
      }
    }
  });
}

}  // namespace tessera
