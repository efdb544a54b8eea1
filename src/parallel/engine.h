// Spreads a model's units over ranks while it computes: the runner that gathers, releases and reduces.
//
//   Engine engine(world, *model, model->units(), options);
//   {
//     auto pass = engine.forward();                   // the root is gathered; run() works while it lives
//     loss = model->loss(batch, engine).sum;
//   }
//   engine.backward(loss, /*last_micro_step=*/true);  // reductions run beside it
//   ... ShardedOptimizer::update reads engine.units() ...
//
// The model must outlive the engine, and every graph made under it must be gone before it. All ranks make the same
// calls in the same order. One thread at a time: hooks run inside backward(). After an exception the engine cannot be
// used again. docs/design/parallel.md says what happens when.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/unit.h"
#include "parallel/flat_unit.h"
#include "tessera/world.h"

namespace tessera {

enum class BackwardPrefetch { kNone, kPre, kPost };

struct EngineOptions {
  Placement placement;
  UnitTypes types;
  bool forward_prefetch = true;
  BackwardPrefetch backward_prefetch = BackwardPrefetch::kPre;
  bool sync_module_states = true;  // every rank begins with rank 0's values
  // The parameters that the optimizer's weight decay leaves alone; empty: none.
  std::function<bool(const std::string& name)> is_exempt_from_decay;
};

class Engine : public UnitRunner {
 public:
  // Collective. Throws Error naming the first difference where the ranks' models are not alike.
  Engine(World& world, torch::nn::Module& model, const std::vector<Unit>& units, const EngineOptions& options);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // While it lives, the root is whole and units may run. At its end, without gradients, everything is released.
  class Pass {
   public:
    explicit Pass(Engine& engine);
    ~Pass() noexcept(false);
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    Engine& engine_;
  };
  [[nodiscard]] Pass forward() { return Pass(*this); }
  at::Tensor run(const Unit& unit, const at::Tensor& input, const Body& body) override;

  void backward(const at::Tensor& loss, bool last_micro_step = true);

  // Every unit's gradient() is there when it returns. After the last micro-step, before an update.
  void wait_for_gradients();

  // The units in the order of the model's list, the root last.
  std::vector<FlatUnit>& units() { return units_; }
  const UnitGroups& groups() const { return groups_; }

 private:
  struct Progress;  // of a unit within one forward and backward

  std::size_t root() const { return units_.size() - 1; }
  void add_unit(const std::string& name, const std::vector<UnitParameter>& parameters);
  void prefetch(std::ptrdiff_t index);
  void release_after_forward(std::size_t index);
  void release_all();

  // What backward tells.
  void on_output_gradient(std::size_t index);
  void on_input_gradient(std::size_t index);
  void on_parameter_gradient(std::size_t index, std::size_t slot);
  void begin_reduce(std::size_t index);

  EngineOptions options_;
  UnitGroups groups_;
  std::vector<FlatUnit> units_;
  std::vector<Progress> progress_;
  std::unordered_map<const torch::nn::Module*, std::size_t> index_of_;
  std::vector<at::Tensor> watched_;  // parameters that carry a hook of ours
  std::ptrdiff_t next_to_reduce_ = 0;
  bool last_micro_step_ = true, in_backward_ = false;
};

}  // namespace tessera
