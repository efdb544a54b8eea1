// The files that rank 0 writes and reads for all ranks, unit by unit: a model's weights, and an optimizer's states.
//
// Collective, between steps. Only rank 0 touches the file; if that fails, every rank throws the same error.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "parallel/sharded_optimizer.h"
#include "parallel/train_step.h"
#include "state/state_file.h"
#include "tessera/world.h"

namespace tessera {

// One flat state. Names in the file are the prefix and the parameter's name.
struct FlatState {
  std::string prefix;
  // This rank's part of unit `index`: updated(), float32.
  std::function<kernels::SplitFloats(std::size_t index)> part;
  // Gives unit `index` new values: [padded_numel], the same on every rank.
  std::function<void(std::size_t index, const at::Tensor& whole)> replace;
  // Gives this rank's part of unit `index` new values: [updated().numel()], float32 on any device. For parameters it
  // may be collective.
  std::function<void(std::size_t index, const at::Tensor& part)> replace_part;
};

// A model that an engine has spread.
struct SpreadModel {
  World& world;
  Engine& engine;
  const torch::nn::Module& model;
  // Runs the work that moves tensors between ranks, which cannot be retried if it fails; empty: just runs it. Rank 0's
  // work on the file is not part of it.
  std::function<void(const char* call, const std::function<void()>& work)> guard{};
  void guarded(const char* call, const std::function<void()>& work) const { guard ? guard(call, work) : work(); }
};

FlatState parameters_of(Engine& engine);
// Under the names of the optimizer's descriptor, which are torch's.
std::vector<FlatState> optimizer_states_of(Engine& engine, const ShardedOptimizer& optimizer);

// The same as a checkpoint names them (weights/checkpoint_index.h): the parameters, and with them the optimizer's
// states.
FlatState checkpoint_parameters(Engine& engine);
std::vector<FlatState> checkpoint_states(Engine& engine, const ShardedOptimizer& optimizer);

// Other names of the same parameters, by the name that its unit uses: the first.
std::unordered_map<std::string, std::vector<std::string>> other_names_of(const torch::nn::Module& model);

struct NamedBuffer {
  StateTensor description;
  at::Tensor tensor;
};
// The model's buffers, each once; larger elements first, so that each tensor of a file is aligned to its element size.
std::vector<NamedBuffer> buffers_of(const torch::nn::Module& model);

// The weight file: parameters, and rank 0's buffers: make them the same on all ranks first. The file appears complete.
void write_weights_file(const SpreadModel& spread, const std::filesystem::path& file);

// Every rank gets the file's values. Throws UsageError naming all tensors that do not fit, before changing any.
void read_weights_file(const SpreadModel& spread, const std::filesystem::path& file);

// What an optimizer's state is besides tensors, by name: its number of updates and the state of the loss scale.
std::map<std::string, double> progress_numbers(const TrainStep& step);

// The states and, in the metadata, those numbers.
void write_optimizer_file(const SpreadModel& spread, const TrainStep& step, const std::filesystem::path& file);

struct OptimizerProgress {
  std::int64_t num_updates = 0;
  LossScaler::State scale;  // the step's own if the file's run had another type and no scale
};

// The reverse; `number` gives a named number if it is stored. Throws UsageError naming `origin` without a number of
// updates.
OptimizerProgress progress_of(const TrainStep& step, const std::string& origin,
                              const std::function<std::optional<double>(const std::string&)>& number);

// Reads the states into the optimizer and returns the rest, the same on every rank.
OptimizerProgress read_optimizer_file(const SpreadModel& spread, const TrainStep& step,
                                      const std::filesystem::path& file);

}  // namespace tessera
