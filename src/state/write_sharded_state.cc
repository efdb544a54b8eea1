#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <string_view>
#include <utility>

#include "comm/exchange.h"
#include "core/error.h"
#include "core/file.h"
#include "state/sharded_state.h"
#include "state/state_file.h"
#include "state/unit_file.h"
#include "weights/block_checksums.h"
#include "weights/safetensors.h"
#include "weights/weights.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWorthAThread = std::size_t{1} << 20;  // bytes

std::int64_t aligned(std::int64_t bytes) {
  constexpr std::int64_t kAlignment = 64;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
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

// What this rank writes, valid until the next update; buffers, which forward passes may change, are copied. Waits for
// updates that still run.
StateShare share_to_save(const SpreadModel& spread, const ShardedOptimizer& optimizer) {
  const at::NoGradGuard no_gradients;
  const std::vector<FlatState> states = checkpoint_states(spread.engine, optimizer);
  StateShare share;
  if (spread.world.rank() == 0) {
    for (const NamedBuffer& buffer : buffers_of(spread.model)) {
      const std::int64_t numel = buffer.tensor.numel();
      if (numel == 0) continue;
      share.pieces.push_back(
          {kModelPrefix + buffer.description.name, buffer.description.shape, 0, numel, share.regions.size(), 0});
      share.regions.push_back({buffer.tensor.detach().clone(at::MemoryFormat::Contiguous).view({-1})});
    }
  }
  spread.guarded("saving", [&] {
    for (FlatUnit& unit : spread.engine.units()) unit.finish_update();
  });
  for (std::size_t index = 0; index < spread.engine.units().size(); ++index) {
    const FlatUnit& unit = spread.engine.units()[index];
    const FlatRange written = written_part(unit, spread.engine.groups(), spread.world);
    for (const FlatState& state : states) {
      if (written.empty()) continue;
      for (const FlatSlot& slot : unit.layout().slots()) {
        const FlatRange own = intersect(written, {slot.offset, slot.offset + slot.numel});
        if (own.empty()) continue;
        share.pieces.push_back({state.prefix + slot.name, slot.shape, own.begin - slot.offset, own.numel(),
                                share.regions.size(), own.begin - written.begin});
      }
      share.regions.push_back(state.part(index).narrow(written.begin - unit.updated().begin, written.numel()));
    }
    share.regions_until.push_back(share.regions.size());
  }
  // Larger elements first, so that each tensor of the file is aligned to its element size.
  const auto element_size = [&](const StatePiece& piece) {
    return c10::elementSize(share.regions[piece.region].type());
  };
  std::ranges::stable_sort(share.pieces,
                           [&](const StatePiece& a, const StatePiece& b) { return element_size(a) > element_size(b); });
  return share;
}

// This rank's file, which appears complete, and what the index says about it.
CheckpointIndex write_share(const StateShare& share, const fs::path& folder, at::Device device, int rank,
                            int num_ranks) {
  const std::string name = shard_name(rank, num_ranks);
  std::vector<WeightEntry> entries;
  for (const StatePiece& piece : share.pieces) {
    WeightEntry& entry = entries.emplace_back();
    entry.name = piece.name;
    entry.type = weight_type(share.regions[piece.region].type());
    entry.shape = {piece.numel};
    entry.strides = {1};
    entry.numel = piece.numel;
  }
  OutputFile file(folder / name);
  BlockChecksums checksums;
  HostChunks chunks(device);
  const auto write = [&](std::string_view bytes) {
    const bool is_large = bytes.size() >= kWorthAThread;
    std::future<void> checked =
        std::async(is_large ? std::launch::async : std::launch::deferred, [&] { checksums.add(bytes); });
    file.write(bytes);
    checked.get();
  };
  write(compose_safetensors_header(entries, {{"format", "tessera"}}));
  CheckpointIndex index;
  for (const StatePiece& piece : share.pieces) {
    const kernels::SplitFloats values = share.values(piece);
    StoredTensor& tensor = index.tensors[piece.name];
    tensor.type = weight_type(values.type());
    tensor.shape = piece.shape;
    tensor.parts = {{name, piece.begin, piece.begin + piece.numel, static_cast<std::int64_t>(file.num_written())}};
    chunks.for_each(values, write);
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
      share_(share_to_save(spread, step.optimizer())) {}

StateSnapshot::Sizes StateSnapshot::sizes() const {
  Sizes sizes;
  for (const kernels::SplitFloats& region : share_.regions) {
    for (const at::Tensor& half : {region.values, region.remainder}) {
      if (!half.defined()) continue;
      (half.is_cpu() ? sizes.on_host : sizes.on_device) += aligned(static_cast<std::int64_t>(half.nbytes()));
    }
  }
  return sizes;
}

std::vector<Transfer> StateSnapshot::copy(Copies copies, at::Tensor& buffer) {
  const at::NoGradGuard no_gradients;
  if (copies == Copies::kOnDevice) {
    for (kernels::SplitFloats& region : share_.regions) region = region.clone();
  }
  if (copies == Copies::kNone || copies == Copies::kOnDevice) {
    copied_ = Transfer::of_current_stream(device_);  // which updates follow on the same stream
    return {};
  }
  const HostLink link(device_, copies == Copies::kOnHostPinned);
  const std::int64_t num_bytes = sizes().sum();
  if (!buffer.defined() || buffer.numel() < num_bytes) buffer = link.host_empty(num_bytes, at::kByte);
  std::int64_t at = 0;
  std::vector<Transfer> until_region = {Transfer()};  // one after the other: the last one ends last
  for (kernels::SplitFloats& region : share_.regions) {
    for (at::Tensor* half : {&region.values, &region.remainder}) {
      if (!half->defined()) continue;
      const auto bytes = static_cast<std::int64_t>(half->nbytes());
      const at::Tensor to = buffer.narrow(0, at, bytes).view(half->scalar_type());
      if (half->is_cpu()) {
        to.copy_(*half);  // of an offloaded state
      } else {
        copied_ = link.to_host(to, *half);
      }
      *half = to;
      at += aligned(bytes);
    }
    until_region.push_back(copied_);
  }
  std::vector<Transfer> of_units;
  for (const std::size_t num_regions : share_.regions_until) of_units.push_back(until_region[num_regions]);
  return of_units;
}

CheckpointIndex StateSnapshot::write(const fs::path& folder) const {
  const at::NoGradGuard no_gradients;
  copied_.wait();
  // Its copies wait for what is queued on the current stream, which must not be the training's.
  c10::OptionalStreamGuard own_stream;
  if (!device_.is_cpu()) {
    own_stream.reset_stream(c10::impl::VirtualGuardImpl(device_.type()).getStreamFromGlobalPool(device_));
  }
  return write_share(share_, folder, device_, rank_, num_ranks_);
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

}  // namespace tessera
