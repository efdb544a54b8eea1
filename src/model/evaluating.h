#pragma once

#include <torch/nn/module.h>

namespace tessera {

// Puts a model in evaluation mode for the object's lifetime.
class Evaluating {
 public:
  explicit Evaluating(torch::nn::Module& model) : model_(model), was_training_(model.is_training()) { model_.eval(); }
  ~Evaluating() { model_.train(was_training_); }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  torch::nn::Module& model_;
  bool was_training_;
};

}  // namespace tessera
