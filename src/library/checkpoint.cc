#include "tessera/checkpoint.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "checkpoint/load_weights.h"
#include "core/error.h"
#include "library/agreement.h"
#include "library/shard_impl.h"
#include "library/state_file.h"
#include "parallel/whole_state.h"

namespace tessera {
namespace {

struct Buffer {
  StateTensor description;
  at::Tensor tensor;
};

// A model's tensors in the order of the file: larger elements first, so that each is aligned to its own.
struct ModelState {
  std::vector<Buffer> wide, narrow;             // buffers of 4 bytes and more an element, and of fewer
  std::vector<std::vector<StateTensor>> units;  // the parameters, by unit and slot

  std::vector<StateTensor> all() const {
    std::vector<StateTensor> tensors;
    for (const Buffer& buffer : wide) tensors.push_back(buffer.description);
    for (const auto& unit : units) tensors.insert(tensors.end(), unit.begin(), unit.end());
    for (const Buffer& buffer : narrow) tensors.push_back(buffer.description);
    return tensors;
  }
};

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

ModelState state_of(Sharded::Impl& sharded) {
  ModelState state;
  for (Buffer& buffer : buffers_of(sharded.model)) {
    (buffer.tensor.element_size() >= 4 ? state.wide : state.narrow).push_back(std::move(buffer));
  }
  const auto other_names = other_names_of(sharded.model);
  for (const FlatUnit& unit : sharded.engine->units()) {
    std::vector<StateTensor>& tensors = state.units.emplace_back();
    for (const FlatSlot& slot : unit.layout().slots()) {
      const auto others = other_names.find(slot.name);
      tensors.push_back(
          {slot.name, others == other_names.end() ? std::vector<std::string>() : others->second, slot.shape});
    }
  }
  return state;
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

// Any type travels as bytes.
void broadcast_buffer(World& world, at::Tensor& buffer) {
  if (world.size() == 1 || buffer.numel() == 0) return;
  const at::Tensor flat = buffer.detach().contiguous().clone().view({-1});
  world.all().broadcast(flat.view(at::kByte), 0, "buffers")->wait();
  buffer.copy_(flat.view(buffer.sizes()));
}

}  // namespace

void save_weights(Sharded& sharded, const std::filesystem::path& file) {
  Sharded::Impl& impl = sharded.impl();
  check_ready(impl, "save_weights");
  const at::NoGradGuard no_gradients;
  const ModelState state = state_of(impl);
  std::optional<StateWriter> writer;  // rank 0's
  on_first_rank(impl.world, [&] {
    writer.emplace(file, state.all());
    for (const Buffer& buffer : state.wide) writer->add(buffer.tensor);
  });
  for (FlatUnit& unit : impl.engine->units()) {
    at::Tensor whole;
    impl.guarded("save_weights", [&] {
      settle(unit);
      whole = gather_whole(unit, impl.engine->groups(), unit.master(), impl.world.device());
    });
    on_first_rank(impl.world, [&] {
      for (const FlatSlot& slot : unit.layout().slots()) writer->add(slot_of(whole, slot));
    });
  }
  on_first_rank(impl.world, [&] {
    for (const Buffer& buffer : state.narrow) writer->add(buffer.tensor);
    writer->finish();
  });
}

void load_weights(Sharded& sharded, const std::filesystem::path& file) {
  Sharded::Impl& impl = sharded.impl();
  check_ready(impl, "load_weights");
  const at::NoGradGuard no_gradients;
  ModelState state = state_of(impl);
  std::optional<StateReader> reader;  // rank 0's
  on_first_rank(impl.world, [&] { reader.emplace(file, state.all()); });
  impl.guarded("load_weights", [&] {
    for (std::vector<Buffer>* buffers : {&state.wide, &state.narrow}) {
      for (Buffer& buffer : *buffers) {
        const auto values = reader ? reader->tensor(buffer.description) : std::nullopt;
        if (values) buffer.tensor.copy_(*values);
        broadcast_buffer(impl.world, buffer.tensor);
      }
    }
    for (std::size_t i = 0; i < state.units.size(); ++i) {
      FlatUnit& unit = impl.engine->units()[i];
      const at::Tensor whole =
          at::zeros({unit.layout().padded_numel()}, at::dtype(at::kFloat).device(impl.world.device()));
      if (whole.numel() == 0) continue;
      for (std::size_t slot = 0; reader && slot < state.units[i].size(); ++slot) {
        slot_of(whole, unit.layout().slots()[slot]).copy_(*reader->tensor(state.units[i][slot]));
      }
      if (impl.world.size() > 1) impl.world.all().broadcast(whole, 0, unit.name())->wait();
      replace_values(unit, whole);
    }
  });
}

void load_weights(torch::nn::Module& module, const std::filesystem::path& file) {
  const Weights weights = Weights::open(file);
  LoadOptions options;
  options.ties = weights.ties();
  load_weights(module, weights, options);
}

}  // namespace tessera
