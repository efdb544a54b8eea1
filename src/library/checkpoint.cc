#include "tessera/checkpoint.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "checkpoint/load_weights.h"
#include "core/error.h"
#include "library/agreement.h"
#include "library/optimizer_impl.h"
#include "library/unit_file.h"

namespace tessera {
namespace {

constexpr const char* kNumUpdates = "tessera.num_updates";
constexpr const char* kLossScale = "tessera.loss_scale";
constexpr const char* kNumCleanSteps = "tessera.num_clean_steps";

struct Buffer {
  StateTensor description;
  at::Tensor tensor;
};

// Larger elements first: then each tensor of a file is aligned to its own.
std::vector<Buffer> buffers_of(const torch::nn::Module& model) {
  std::vector<Buffer> buffers;
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
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const Buffer& a, const Buffer& b) { return a.tensor.element_size() > b.tensor.element_size(); });
  return buffers;
}

void check_ready(const Sharded::Impl& sharded, const char* call) {
  sharded.check_idle(call);
  sharded.watch.check();
  if (sharded.num_passes + sharded.num_losses == 0) return;
  throw UsageError(
      fmt::format("{} was called within a step: call it after Optimizer::step (and evaluate under "
                  "torch::NoGradGuard)",
                  call));
}

SpreadModel spread_of(Sharded::Impl& sharded) {
  return {sharded.world, *sharded.engine, sharded.model,
          [&sharded](const char* call, const std::function<void()>& work) { sharded.guarded(call, work); }};
}

// A model's tensors as its file holds them: buffers of 4 bytes an element and more, parameters, narrower buffers.
struct WeightsFile {
  explicit WeightsFile(Sharded::Impl& sharded) : states{parameters_of(*sharded.engine)} {
    for (Buffer& buffer : buffers_of(sharded.model)) {
      (buffer.tensor.element_size() >= 4 ? wide : narrow).push_back(std::move(buffer));
    }
    for (const Buffer& buffer : wide) tensors.push_back(buffer.description);
    for (StateTensor& tensor : describe(spread_of(sharded), states)) tensors.push_back(std::move(tensor));
    for (const Buffer& buffer : narrow) tensors.push_back(buffer.description);
  }

  std::vector<FlatState> states;
  std::vector<Buffer> wide, narrow;
  std::vector<StateTensor> tensors;
};

// Any type travels as bytes.
void load_buffer(World& world, Buffer& buffer, const std::optional<StateReader>& reader) {
  if (buffer.tensor.numel() == 0) return;
  if (reader && reader->has(buffer.description.name)) buffer.tensor.copy_(reader->tensor(buffer.description.name));
  if (world.size() == 1) return;
  const at::Tensor flat = buffer.tensor.detach().contiguous().clone().view({-1});
  world.all().broadcast(flat.view(at::kByte), 0, "buffers")->wait();
  buffer.tensor.copy_(flat.view(buffer.tensor.sizes()));
}

// What rank 0 has read, to all.
double tell(World& world, double number) {
  const at::Tensor told = at::tensor({number}, at::kDouble).to(world.device());
  world.all().broadcast(told.view(at::kLong), 0, "optimizer")->wait();
  return told.item<double>();
}

}  // namespace

void save_weights(Sharded& sharded, const std::filesystem::path& file) {
  Sharded::Impl& impl = sharded.impl();
  check_ready(impl, "save_weights");
  impl.guarded("save_weights", [&] { impl.make_buffers_alike(); });
  const WeightsFile layout(impl);
  std::optional<StateWriter> writer;  // rank 0's
  on_first_rank(impl.world, [&] {
    writer.emplace(file, layout.tensors);
    for (const Buffer& buffer : layout.wide) writer->add(buffer.tensor);
  });
  write_units(spread_of(impl), layout.states, writer);
  on_first_rank(impl.world, [&] {
    for (const Buffer& buffer : layout.narrow) writer->add(buffer.tensor);
    writer->finish();
  });
}

void load_weights(Sharded& sharded, const std::filesystem::path& file) {
  Sharded::Impl& impl = sharded.impl();
  check_ready(impl, "load_weights");
  WeightsFile layout(impl);
  std::optional<StateReader> reader;  // rank 0's
  on_first_rank(impl.world, [&] { reader.emplace(file, layout.tensors); });
  impl.guarded("load_weights", [&] {
    const at::NoGradGuard no_gradients;
    for (Buffer& buffer : layout.wide) load_buffer(impl.world, buffer, reader);
    for (Buffer& buffer : layout.narrow) load_buffer(impl.world, buffer, reader);
  });
  read_units(spread_of(impl), layout.states, reader);
}

void load_weights(torch::nn::Module& module, const std::filesystem::path& file) {
  const Weights weights = Weights::open(file);
  LoadOptions options;
  options.ties = weights.ties();
  load_weights(module, weights, options);
}

void save_optimizer(Optimizer& optimizer, const std::filesystem::path& file) {
  Optimizer::Impl& impl = optimizer.impl();
  Sharded::Impl& sharded = impl.sharded;
  check_ready(sharded, "save_optimizer");
  const std::vector<FlatState> states = moments_of(*sharded.engine, impl.optimizer);
  std::map<std::string, std::string> metadata{{kNumUpdates, fmt::to_string(impl.optimizer.num_updates())}};
  if (sharded.scaler) {
    metadata.emplace(kLossScale, fmt::to_string(sharded.scaler->state().scale));
    metadata.emplace(kNumCleanSteps, fmt::to_string(sharded.scaler->state().num_clean_steps));
  }
  std::optional<StateWriter> writer;  // rank 0's
  on_first_rank(sharded.world, [&] { writer.emplace(file, describe(spread_of(sharded), states), metadata); });
  write_units(spread_of(sharded), states, writer);
  on_first_rank(sharded.world, [&] { writer->finish(); });
}

void load_optimizer(Optimizer& optimizer, const std::filesystem::path& file) {
  Optimizer::Impl& impl = optimizer.impl();
  Sharded::Impl& sharded = impl.sharded;
  World& world = sharded.world;
  check_ready(sharded, "load_optimizer");
  const std::vector<FlatState> states = moments_of(*sharded.engine, impl.optimizer);
  std::optional<StateReader> reader;  // rank 0's
  double num_updates = 0;
  LossScaler::State scale;
  if (sharded.scaler) scale = sharded.scaler->state();
  on_first_rank(world, [&] {
    reader.emplace(file, describe(spread_of(sharded), states), "optimizer's state does");
    num_updates = reader->number(kNumUpdates);
    if (!sharded.scaler) return;
    // A file of a run in another type has none: the scale stays what it is.
    scale.scale = reader->number(kLossScale, scale.scale);
    scale.num_clean_steps =
        static_cast<std::int64_t>(reader->number(kNumCleanSteps, static_cast<double>(scale.num_clean_steps)));
  });
  read_units(spread_of(sharded), states, reader);
  sharded.guarded("load_optimizer", [&] {
    impl.optimizer.set_num_updates(static_cast<std::int64_t>(tell(world, num_updates)));
    if (!sharded.scaler) return;
    scale.scale = tell(world, scale.scale);
    scale.num_clean_steps = static_cast<std::int64_t>(tell(world, static_cast<double>(scale.num_clean_steps)));
    sharded.scaler->set_state(scale);
  });
}

}  // namespace tessera
