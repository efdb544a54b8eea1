#include "state/sharded_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <fstream>
#include <functional>
#include <future>
#include <set>
#include <string_view>
#include <utility>

#include "comm/exchange.h"
#include "core/error.h"
#include "core/output_file.h"
#include "core/text.h"
#include "parallel/host_link.h"
#include "state/weights_file.h"
#include "weights/block_checksums.h"
#include "weights/safetensors.h"
#include "weights/weight_tensors.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kChunkBytes = std::int64_t{32} << 20;  // from a GPU at once

std::int64_t aligned(std::int64_t bytes) {
  constexpr std::int64_t kAlignment = 64;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

constexpr std::size_t kWorthAThread = std::size_t{1} << 20;  // bytes

FlatState model_state(Engine& engine) {
  FlatState state = parameters_of(engine);
  state.prefix = kModelPrefix;
  return state;
}

std::vector<FlatState> optimizer_states(Engine& engine, const ShardedOptimizer& optimizer) {
  std::vector<FlatState> states = optimizer_states_of(engine, optimizer);
  for (FlatState& state : states) state.prefix = kOptimizerPrefix + state.prefix;
  return states;
}

// Of a unit's flat buffer: what this rank writes. Ranks that hold the same values share them equally.
FlatRange written_part(const FlatUnit& unit, const UnitGroups& groups, const World& world) {
  int num_holders = world.size(), own = world.rank();
  if (unit.is_part()) {
    num_holders = groups.replicas == nullptr ? 1 : groups.replicas->size();
    own = groups.replicas == nullptr ? 0 : groups.replicas->rank();
  }
  const FlatRange held = intersect(unit.updated(), {0, unit.layout().numel()});
  if (held.empty()) return held;
  return {held.begin + held.numel() * own / num_holders, held.begin + held.numel() * (own + 1) / num_holders};
}

std::string shard_name(int rank, int num_ranks) {
  return fmt::format("state-{:05}-of-{:05}.safetensors", rank, num_ranks);
}

// Never null.
const StoredTensor* find_tensor(const CheckpointReader& reader, const std::string& name,
                                const std::vector<std::int64_t>& shape, at::ScalarType type) {
  const auto found = reader.index().tensors.find(name);
  const auto fail = [&](const std::string& what) {
    throw UsageError(fmt::format("{}: tensor '{}' {}", reader.folder().string(), printable(name), what));
  };
  static const StoredTensor nothing{WeightType::kF32, {0}, {}};
  if (found == reader.index().tensors.end() && checked_numel(shape) == 0) return &nothing;  // is not written
  if (found == reader.index().tensors.end()) fail("is missing: the checkpoint is of another model or optimizer");
  const StoredTensor& tensor = found->second;
  if (tensor.shape != shape) {
    fail(fmt::format("is {} there and {} in the model", shape_text(tensor.shape), shape_text(shape)));
  }
  const bool can_convert = is_floating(tensor.type) && at::isFloatingType(type);
  if (tensor.type != weight_type(type) && !can_convert) {
    fail(fmt::format("has the type {}", safetensors_name(tensor.type)));
  }
  return &tensor;
}

// Elements [begin, end) of a tensor, converted if the checkpoint has another type. `to` is flat, on the host.
void read_values(CheckpointReader& reader, const StoredTensor& tensor, std::int64_t begin, std::int64_t end,
                 const at::Tensor& to) {
  if (tensor.type == weight_type(to.scalar_type())) {
    return reader.read(tensor, begin, end, static_cast<char*>(to.mutable_data_ptr()));
  }
  constexpr std::int64_t kPieceNumel = 4 << 20;  // of a second copy
  for (std::int64_t at = begin; at < end; at += kPieceNumel) {
    const at::Tensor piece = at::empty({std::min(kPieceNumel, end - at)}, scalar_type(tensor.type));
    reader.read(tensor, at, at + piece.numel(), static_cast<char*>(piece.mutable_data_ptr()));
    to.narrow(0, at - begin, piece.numel()).copy_(piece);
  }
}

// Reads all states of all units. An error is kept until the end, and the collectives go on: no rank is left waiting.
class StateLoader {
 public:
  StateLoader(const SpreadModel& spread, CheckpointReader& reader, bool reads_optimizer)
      : spread_(spread), reader_(reader), reads_optimizer_(reads_optimizer) {}

  void load_states(const std::vector<FlatState>& states) {
    keep_error([&] { check_known(states); });
    for (std::size_t index = 0; index < spread_.engine.units().size(); ++index) {
      const FlatUnit& unit = spread_.engine.units()[index];
      if (unit.layout().padded_numel() == 0) continue;
      for (const FlatState& state : states) {
        state.replace_part(index, values_of(unit, state.prefix, state.part(index).scalar_type()));
      }
    }
  }

  void load_buffers() {
    for (NamedBuffer& buffer : buffers_of(spread_.model)) {
      keep_error([&] {
        const StateTensor& wanted = buffer.description;
        const StoredTensor* stored = find_tensor(reader_, kModelPrefix + wanted.name, wanted.shape, wanted.type);
        const at::Tensor values = at::empty(wanted.shape, wanted.type);
        read_values(reader_, *stored, 0, values.numel(), values.view({-1}));
        buffer.tensor.copy_(values);
      });
    }
  }

  void finish() {
    on_every_rank(spread_.world, [&] {
      if (error_) std::rethrow_exception(error_);
    });
  }

 private:
  // A checkpoint may hold no tensor of the kinds that are read which the model does not have.
  void check_known(const std::vector<FlatState>& states) const {
    std::set<std::string> known;
    for (const NamedBuffer& buffer : buffers_of(spread_.model)) known.insert(kModelPrefix + buffer.description.name);
    for (const FlatUnit& unit : spread_.engine.units()) {
      for (const FlatState& state : states) {
        for (const FlatSlot& slot : unit.layout().slots()) known.insert(state.prefix + slot.name);
      }
    }
    for (const auto& [name, tensor] : reader_.index().tensors) {
      const bool is_read = name.starts_with(kModelPrefix) || (reads_optimizer_ && name.starts_with(kOptimizerPrefix));
      if (!is_read || known.contains(name)) continue;
      throw UsageError(fmt::format("{}: tensor '{}' is unknown here: the checkpoint is of another model or optimizer",
                                   reader_.folder().string(), printable(name)));
    }
  }

  // Of the unit's updated() part. What all ranks hold alike is read once on each node: each rank reads a share, and
  // they send it on.
  at::Tensor values_of(const FlatUnit& unit, const std::string& prefix, at::ScalarType type) {
    const FlatRange held = unit.updated();
    Group& node = spread_.world.node();
    const std::int64_t num_shares = unit.is_part() ? 1 : node.size(), place = unit.is_part() ? 0 : node.rank();
    const std::int64_t share = (held.numel() + num_shares - 1) / num_shares;
    const at::Tensor own = at::zeros({share}, type);
    keep_error([&] {
      read_range(unit, prefix, intersect(held, {held.begin + place * share, held.begin + (place + 1) * share}), own);
    });
    if (num_shares == 1 || share == 0) return own;
    const at::Tensor all = at::empty({num_shares * share}, own.options().device(spread_.world.device()));
    node.all_gather(all, own.to(all.device()), "loading")->wait();
    return all.narrow(0, 0, held.numel());
  }

  void read_range(const FlatUnit& unit, const std::string& prefix, FlatRange held, const at::Tensor& part) {
    for (const FlatSlot& slot : unit.layout().slots()) {
      const StoredTensor* tensor = find_tensor(reader_, prefix + slot.name, slot.shape, part.scalar_type());
      const FlatRange own = intersect(held, {slot.offset, slot.offset + slot.numel});
      if (own.empty()) continue;
      read_values(reader_, *tensor, own.begin - slot.offset, own.end - slot.offset,
                  part.narrow(0, own.begin - held.begin, own.numel()));
    }
  }

  void keep_error(const std::function<void()>& work) {
    if (error_) return;
    try {
      work();
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  const SpreadModel& spread_;
  CheckpointReader& reader_;
  bool reads_optimizer_;
  std::exception_ptr error_;
};

// What this rank writes, valid until the next step. Waits for updates that still run.
std::vector<StatePiece> pieces_to_save(const SpreadModel& spread, const ShardedOptimizer& optimizer) {
  const at::NoGradGuard no_gradients;
  std::vector<FlatState> states = optimizer_states(spread.engine, optimizer);
  states.insert(states.begin(), model_state(spread.engine));
  std::vector<StatePiece> pieces;
  if (spread.world.rank() == 0) {
    for (const NamedBuffer& buffer : buffers_of(spread.model)) {
      if (buffer.tensor.numel() == 0) continue;
      pieces.push_back({kModelPrefix + buffer.description.name, buffer.description.shape, 0,
                        buffer.tensor.detach().contiguous().view({-1})});
    }
  }
  spread.guarded("saving", [&] {
    for (FlatUnit& unit : spread.engine.units()) unit.finish_update();
  });
  for (std::size_t index = 0; index < spread.engine.units().size(); ++index) {
    const FlatUnit& unit = spread.engine.units()[index];
    const FlatRange written = written_part(unit, spread.engine.groups(), spread.world);
    for (const FlatState& state : states) {
      const at::Tensor part = state.part(index);
      for (const FlatSlot& slot : unit.layout().slots()) {
        const FlatRange own = intersect(written, {slot.offset, slot.offset + slot.numel});
        if (own.empty()) continue;
        pieces.push_back({state.prefix + slot.name, slot.shape, own.begin - slot.offset,
                          part.narrow(0, own.begin - unit.updated().begin, own.numel())});
      }
    }
  }
  // Larger elements first, so that each tensor of the file is aligned to its element size.
  std::stable_sort(pieces.begin(), pieces.end(), [](const StatePiece& a, const StatePiece& b) {
    return a.values.element_size() > b.values.element_size();
  });
  return pieces;
}

// Gives the bytes of a flat tensor to `take`, in order. From a GPU they come in chunks, each while the one before is
// taken, beside what else the GPU does.
void for_each_chunk(const at::Tensor& values, const HostLink& link, std::array<at::Tensor, 2>& bounce,
                    const std::function<void(std::string_view)>& take) {
  const auto bytes_of_tensor = [](const at::Tensor& host) {
    return std::string_view(static_cast<const char*>(host.const_data_ptr()), host.nbytes());
  };
  if (values.is_cpu()) return take(bytes_of_tensor(values));
  const at::Tensor bytes = values.view(at::kByte);
  const auto start = [&](std::int64_t at, at::Tensor& host) {
    if (!host.defined()) host = link.host_empty(kChunkBytes, at::kByte);
    return link.to_host(host.narrow(0, 0, std::min(kChunkBytes, bytes.numel() - at)),
                        bytes.narrow(0, at, std::min(kChunkBytes, bytes.numel() - at)));
  };
  Transfer coming = start(0, bounce[0]);
  for (std::int64_t at = 0; at < bytes.numel(); at += kChunkBytes) {
    coming.wait();
    const at::Tensor here = bounce[0].narrow(0, 0, std::min(kChunkBytes, bytes.numel() - at));
    std::swap(bounce[0], bounce[1]);
    if (at + kChunkBytes < bytes.numel()) coming = start(at + kChunkBytes, bounce[0]);
    take(bytes_of_tensor(here));
  }
}

// This rank's file, which appears complete, and what the index says about it.
CheckpointIndex write_pieces(const std::vector<StatePiece>& pieces, const fs::path& folder, at::Device device, int rank,
                             int num_ranks) {
  const std::string name = shard_name(rank, num_ranks);
  std::vector<WeightEntry> entries;
  for (const StatePiece& piece : pieces) {
    WeightEntry& entry = entries.emplace_back();
    entry.name = piece.name;
    entry.type = weight_type(piece.values.scalar_type());
    entry.shape = {piece.values.numel()};
    entry.strides = {1};
    entry.numel = piece.values.numel();
  }
  OutputFile file(folder / name);
  BlockChecksums checksums;
  const HostLink link(device, /*pins=*/true);
  std::array<at::Tensor, 2> bounce;
  const auto write = [&](std::string_view bytes) {
    const bool is_large = bytes.size() >= kWorthAThread;
    std::future<void> checked =
        std::async(is_large ? std::launch::async : std::launch::deferred, [&] { checksums.add(bytes); });
    file.write(bytes);
    checked.get();
  };
  write(compose_safetensors_header(entries, {{"format", "tessera"}}));
  CheckpointIndex index;
  for (const StatePiece& piece : pieces) {
    StoredTensor& tensor = index.tensors[piece.name];
    tensor.type = weight_type(piece.values.scalar_type());
    tensor.shape = piece.shape;
    tensor.parts = {
        {name, piece.begin, piece.begin + piece.values.numel(), static_cast<std::int64_t>(file.num_written())}};
    for_each_chunk(piece.values, link, bounce, write);
  }
  index.files[name] = {static_cast<std::int64_t>(file.num_written()), checksums.finish()};
  file.become_target();
  return index;
}

}  // namespace

StateSnapshot::StateSnapshot(const SpreadModel& spread, const TrainStep& step)
    : device_(spread.world.device()),
      rank_(spread.world.rank()),
      num_ranks_(spread.world.size()),
      pieces_(pieces_to_save(spread, step.optimizer())) {}

StateSnapshot::Sizes StateSnapshot::sizes() const {
  Sizes sizes;
  for (const StatePiece& piece : pieces_) {
    (piece.values.is_cpu() ? sizes.on_host : sizes.on_device) +=
        aligned(static_cast<std::int64_t>(piece.values.nbytes()));
  }
  return sizes;
}

void StateSnapshot::copy(Copies copies, at::Tensor& buffer) {
  const at::NoGradGuard no_gradients;
  if (copies == Copies::kNone) return;
  if (copies == Copies::kOnDevice) {
    for (StatePiece& piece : pieces_) piece.values = piece.values.clone();
    return;
  }
  const HostLink link(device_, copies == Copies::kOnHostPinned);
  const std::int64_t num_bytes = sizes().sum();
  if (!buffer.defined() || buffer.numel() < num_bytes) buffer = link.host_empty(num_bytes, at::kByte);
  std::int64_t at = 0;
  Transfer last;
  for (StatePiece& piece : pieces_) {
    const auto bytes = static_cast<std::int64_t>(piece.values.nbytes());
    const at::Tensor to = buffer.narrow(0, at, bytes).view(piece.values.scalar_type());
    if (piece.values.is_cpu()) {
      to.copy_(piece.values);  // of an offloaded state
    } else {
      last = link.to_host(to, piece.values);
    }
    piece.values = to;
    at += aligned(bytes);
  }
  last.wait();
}

CheckpointIndex StateSnapshot::write(const fs::path& folder) const {
  const at::NoGradGuard no_gradients;
  const c10::DeviceGuard there(device_);  // a new thread starts on device 0
  return write_pieces(pieces_, folder, device_, rank_, num_ranks_);
}

CheckpointIndex gather_index(const SpreadModel& spread, const std::map<std::string, double>& numbers,
                             const CheckpointIndex& own) {
  const std::vector<std::string> texts =
      gather_long_texts(spread.world, contribution_text(own), "the checkpoint's index");
  CheckpointIndex index;
  on_first_rank(spread.world, [&] {
    for (const std::string& text : texts) add_contribution(index, text);
  });
  if (spread.world.rank() != 0) return index;
  index.num_ranks = spread.world.size();
  for (const auto& [name, others] : other_names_of(spread.model)) {
    for (const std::string& other : others) index.other_names[kModelPrefix + other] = kModelPrefix + name;
  }
  index.numbers = numbers;
  return index;
}

void add_file(CheckpointIndex& index, const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> block(static_cast<std::size_t>(kChecksumBlock));
  BlockChecksums checksums;
  std::int64_t num_bytes = 0;
  while (stream.read(block.data(), std::ssize(block)) || stream.gcount() > 0) {
    checksums.add({block.data(), static_cast<std::size_t>(stream.gcount())});
    num_bytes += stream.gcount();
  }
  if (!stream.eof()) throw Error(fmt::format("cannot read {} again", file.string()));
  index.files[file.filename().string()] = {num_bytes, checksums.finish()};
}

void read_model_state(const SpreadModel& spread, CheckpointReader& reader) {
  const at::NoGradGuard no_gradients;
  spread.guarded("loading", [&] {
    StateLoader loader(spread, reader, /*reads_optimizer=*/false);
    loader.load_buffers();
    loader.load_states({model_state(spread.engine)});
    loader.finish();
  });
}

OptimizerProgress read_state(const SpreadModel& spread, const TrainStep& step, CheckpointReader& reader) {
  const at::NoGradGuard no_gradients;
  spread.guarded("loading", [&] {
    std::vector<FlatState> states = optimizer_states(spread.engine, step.optimizer());
    states.insert(states.begin(), model_state(spread.engine));
    StateLoader loader(spread, reader, /*reads_optimizer=*/true);
    loader.load_buffers();
    loader.load_states(states);
    loader.finish();
  });
  return progress_of(step, (reader.folder() / kIndexFile).string(), [&](const std::string& name) {
    const auto found = reader.index().numbers.find(name);
    return found == reader.index().numbers.end() ? std::nullopt : std::optional<double>(found->second);
  });
}

}  // namespace tessera
