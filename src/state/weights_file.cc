#include "state/weights_file.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "comm/exchange.h"

namespace tessera {
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
  std::stable_sort(buffers.begin(), buffers.end(), [](const NamedBuffer& a, const NamedBuffer& b) {
    return a.tensor.element_size() > b.tensor.element_size();
  });
  return buffers;
}

namespace {

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

}  // namespace

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

}  // namespace tessera
