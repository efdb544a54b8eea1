#include "state/unit_file.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "comm/exchange.h"
#include "core/error.h"
#include "parallel/flat_unit.h"
#include "weights/checkpoint_index.h"

namespace tessera {

namespace {

// The tensors of these states in the file, in its order: unit by unit, then state by state.
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

// The reader has checked that everything is present.
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

// A model's tensors in the order of its file: buffers with 4 or more bytes per element, parameters, narrower buffers.
struct WeightsLayout {
  explicit WeightsLayout(const SpreadModel& spread) : states{parameters_of(spread.engine)} {
    for (NamedBuffer& buffer : buffers_of(spread.model)) {
      (buffer.tensor.element_size() >= 4 ? wide : narrow).push_back(std::move(buffer));
    }
    for (const NamedBuffer& buffer : wide) tensors.push_back(buffer.description);
    for (StateTensor& tensor : describe(spread, states)) tensors.push_back(std::move(tensor));
    for (const NamedBuffer& buffer : narrow) tensors.push_back(buffer.description);
  }

  std::vector<FlatState> states;
  std::vector<NamedBuffer> wide, narrow;
  std::vector<StateTensor> tensors;
};

// Sent as bytes, whatever the type.
void load_buffer(World& world, NamedBuffer& buffer, const std::optional<StateReader>& reader) {
  if (buffer.tensor.numel() == 0) return;
  if (reader && reader->has(buffer.description.name)) buffer.tensor.copy_(reader->tensor(buffer.description.name));
  if (world.size() == 1) return;
  const at::Tensor flat = buffer.tensor.detach().contiguous().clone().view({-1});
  world.all().broadcast(flat.view(at::kByte), 0, "buffers")->wait();
  buffer.tensor.copy_(flat.view(buffer.tensor.sizes()));
}

constexpr const char* kMetadataPrefix = "tessera.";

}  // namespace

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

std::vector<NamedBuffer> buffers_of(const torch::nn::Module& model) {
  std::vector<NamedBuffer> buffers;
  std::unordered_map<const void*, std::size_t> known;
  for (const auto& item : model.named_buffers()) {
    const at::Tensor& tensor = item.value();
    if (!tensor.defined()) continue;
    const auto [place, is_new] = known.try_emplace(tensor.unsafeGetTensorImpl(), buffers.size());
    if (is_new) {
      buffers.push_back({{item.key(), {}, tensor.sizes().vec(), tensor.scalar_type()}, tensor});
    } else {
      buffers[place->second].description.other_names.push_back(item.key());
    }
  }
  std::ranges::stable_sort(buffers, [](const NamedBuffer& a, const NamedBuffer& b) {
    return a.tensor.element_size() > b.tensor.element_size();
  });
  return buffers;
}

void write_weights_file(const SpreadModel& spread, const std::filesystem::path& file) {
  const WeightsLayout layout(spread);
  std::optional<StateWriter> writer;  // rank 0's
  on_first_rank(spread.world, [&] {
    writer.emplace(file, spread.world.device(), layout.tensors);
    for (const NamedBuffer& buffer : layout.wide) writer->add(buffer.tensor);
  });
  write_units(spread, layout.states, writer);
  on_first_rank(spread.world, [&] {
    for (const NamedBuffer& buffer : layout.narrow) writer->add(buffer.tensor);
    writer->finish();
  });
}

void read_weights_file(const SpreadModel& spread, const std::filesystem::path& file) {
  WeightsLayout layout(spread);
  std::optional<StateReader> reader;  // rank 0's
  on_first_rank(spread.world, [&] { reader.emplace(file, layout.tensors); });
  const auto load_buffers = [&] {
    const at::NoGradGuard no_gradients;
    for (NamedBuffer& buffer : layout.wide) load_buffer(spread.world, buffer, reader);
    for (NamedBuffer& buffer : layout.narrow) load_buffer(spread.world, buffer, reader);
  };
  spread.guarded("loading", load_buffers);
  read_units(spread, layout.states, reader);
}

std::map<std::string, double> progress_numbers(const TrainStep& step) {
  std::map<std::string, double> numbers{{kNumUpdates, static_cast<double>(step.optimizer().num_updates())}};
  if (step.scaler() == nullptr) return numbers;
  const LossScaler::State& scale = step.scaler()->state();
  numbers[kLossScale] = scale.scale;
  numbers[kNumCleanSteps] = static_cast<double>(scale.num_clean_steps);
  numbers[kHysteresis] = static_cast<double>(scale.hysteresis);
  return numbers;
}

OptimizerProgress progress_of(const TrainStep& step, const std::string& origin,
                              const std::function<std::optional<double>(const std::string&)>& number) {
  OptimizerProgress progress;
  if (step.scaler() != nullptr) progress.scale = step.scaler()->state();
  const auto num_updates = number(kNumUpdates);
  if (!num_updates) throw UsageError(fmt::format("{}: the optimizer's {} is missing", origin, kNumUpdates));
  progress.num_updates = static_cast<std::int64_t>(*num_updates);
  if (const auto scale = number(kLossScale)) progress.scale.scale = *scale;
  if (const auto steps = number(kNumCleanSteps)) progress.scale.num_clean_steps = static_cast<std::int64_t>(*steps);
  if (const auto left = number(kHysteresis)) progress.scale.hysteresis = static_cast<std::int64_t>(*left);
  return progress;
}

void write_optimizer_file(const SpreadModel& spread, const TrainStep& step, const std::filesystem::path& file) {
  const std::vector<FlatState> states = optimizer_states_of(spread.engine, step.optimizer());
  std::map<std::string, std::string> metadata;
  for (const auto& [name, number] : progress_numbers(step)) metadata[kMetadataPrefix + name] = fmt::to_string(number);
  std::optional<StateWriter> writer;  // rank 0's
  on_first_rank(spread.world, [&] { writer.emplace(file, spread.world.device(), describe(spread, states), metadata); });
  write_units(spread, states, writer);
  on_first_rank(spread.world, [&] { writer->finish(); });
}

OptimizerProgress read_optimizer_file(const SpreadModel& spread, const TrainStep& step,
                                      const std::filesystem::path& file) {
  const std::vector<FlatState> states = optimizer_states_of(spread.engine, step.optimizer());
  std::optional<StateReader> reader;  // rank 0's
  OptimizerProgress progress;
  on_first_rank(spread.world, [&] {
    reader.emplace(file, describe(spread, states), "optimizer's state does");
    progress = progress_of(step, file.string(),
                           [&](const std::string& name) { return reader->number(kMetadataPrefix + name); });
  });
  read_units(spread, states, reader);
  // The other ranks get rank 0's.
  std::vector<double> numbers = {static_cast<double>(progress.num_updates), progress.scale.scale,
                                 static_cast<double>(progress.scale.num_clean_steps),
                                 static_cast<double>(progress.scale.hysteresis)};
  spread.guarded("loading", [&] { numbers = numbers_of_first_rank(spread.world, numbers, "optimizer"); });
  return {static_cast<std::int64_t>(numbers[0]),
          {numbers[1], static_cast<std::int64_t>(numbers[2]), static_cast<std::int64_t>(numbers[3])}};
}

}  // namespace tessera
