// Flat states of all units (the parameters, the optimizer's moments) to a file and back, one unit at a time.
//
// Collective, between steps. Only rank 0 has a writer or a reader; where the file fails it, every rank throws its
// error.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parallel/sharded_optimizer.h"
#include "state/state_file.h"
#include "tessera/world.h"

namespace tessera {

// One of them. Names in the file are the prefix and the parameter's name.
struct FlatState {
  std::string prefix;
  // What this rank holds of unit `index`: its updated() part, float32.
  std::function<at::Tensor(std::size_t index)> part;
  // Unit `index` takes new values: [padded_numel], the same on every rank.
  std::function<void(std::size_t index, const at::Tensor& whole)> replace;
};

// A model that an engine has spread.
struct SpreadModel {
  World& world;
  Engine& engine;
  const torch::nn::Module& model;
  // Runs what moves tensors between ranks, which cannot be tried again where it fails; empty: just runs it. What rank 0
  // does to the file is not in it.
  std::function<void(const char* call, const std::function<void()>& work)> guard{};
  void guarded(const char* call, const std::function<void()>& work) const { guard ? guard(call, work) : work(); }
};

FlatState parameters_of(Engine& engine);
// Under the names of the optimizer's descriptor, which are torch's.
std::vector<FlatState> optimizer_states_of(Engine& engine, const ShardedOptimizer& optimizer);

// What the file holds of them, in its order: unit by unit, within one state by state.
std::vector<StateTensor> describe(const SpreadModel& spread, const std::vector<FlatState>& states);

void write_units(const SpreadModel& spread, const std::vector<FlatState>& states, std::optional<StateWriter>& writer);

// The reader has checked that everything is there.
void read_units(const SpreadModel& spread, const std::vector<FlatState>& states,
                const std::optional<StateReader>& reader);

}  // namespace tessera
