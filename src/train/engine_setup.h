// The engine and the optimizer that the settings ask for.
#pragma once

#include <vector>

#include "parallel/engine.h"
#include "parallel/sharded_optimizer.h"
#include "settings/train_settings.h"

namespace tessera {

at::ScalarType scalar_type_of(NumberType type);

// Without first values. Of a text model the weight decay leaves out what has one dimension, biases and norms, as
// Hugging Face's Trainer does; of ResNet it takes all, as torch's SGD does. ResNet's units are float32 whatever it
// computes in.
EngineOptions engine_options(const TrainSettings& settings, const torch::nn::Module& model, at::Device device);

// What is gathered at a time. Throws UsageError where a class is none of the model's.
std::vector<Unit> units_to_spread(const UnitModel& model, const SpreadSettings& spread);

OptimizerOptions optimizer_options(const OptimizerSettings& settings);

}  // namespace tessera
