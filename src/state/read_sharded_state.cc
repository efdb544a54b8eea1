#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <mutex>
#include <set>

#include "comm/exchange.h"
#include "core/error.h"
#include "core/text.h"
#include "kernels/parallel.h"
#include "state/sharded_state.h"
#include "state/unit_file.h"
#include "weights/damaged_values.h"
#include "weights/weights.h"

namespace tessera {
namespace {

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

// Throws UsageError if the values just read are not finite. The optimizer's may be: a second moment can overflow, and
// the update is then 0.
void check_values(const CheckpointReader& reader, const std::string& name, const StoredTensor& tensor,
                  const at::Tensor& values, bool may_be_infinite) {
  const auto* const bytes = static_cast<const char*>(values.const_data_ptr());
  std::mutex mutex;
  Damage damage = Damage::kNone;
  kernels::parallel_parts(0, values.numel(), 1 << 20, [&](std::int64_t begin, std::int64_t end) {
    const Damage here = damage_in(tensor.type, bytes + begin * bytes_of(tensor.type), end - begin);
    const std::lock_guard lock(mutex);
    damage = std::max(damage, here);
  });
  if (damage == Damage::kNone || (damage == Damage::kInfinite && may_be_infinite)) return;
  throw UsageError(fmt::format(
      "{}: tensor '{}' is damaged: there are values that are {}; resume from a checkpoint that "
      "was saved before the training diverged",
      reader.folder().string(), printable(name), damage == Damage::kNan ? "not numbers (NaN)" : "infinite"));
}

// Elements [begin, end) of a tensor of the checkpoint.
struct ValueRange {
  const StoredTensor* tensor;
  std::int64_t begin, end;
  at::Tensor to;  // flat, on the host; of any type
  // Sees what was read, in the checkpoint's type.
  std::function<void(const at::Tensor&)> check;
};

void read_converted(CheckpointReader& reader, const ValueRange& range) {
  constexpr std::int64_t kPieceNumel = 16 << 20;  // of a second copy: a few blocks, which threads share
  for (std::int64_t at = range.begin; at < range.end; at += kPieceNumel) {
    const std::int64_t end = std::min(at + kPieceNumel, range.end);
    const at::Tensor piece = at::empty({end - at}, scalar_type(range.tensor->type));
    reader.read({{range.tensor, at, end, static_cast<char*>(piece.mutable_data_ptr())}});
    range.check(piece);
    range.to.narrow(0, at - range.begin, piece.numel()).copy_(piece);
  }
}

void read_values(CheckpointReader& reader, const std::vector<ValueRange>& ranges) {
  std::vector<TensorRange> unconverted;
  const auto has_its_type = [](const ValueRange& range) {
    return range.tensor->type == weight_type(range.to.scalar_type());
  };
  for (const ValueRange& range : ranges) {
    if (!has_its_type(range)) continue;
    unconverted.push_back({range.tensor, range.begin, range.end, static_cast<char*>(range.to.mutable_data_ptr())});
  }
  reader.read(unconverted);
  for (const ValueRange& range : ranges) {
    if (has_its_type(range)) {
      range.check(range.to);
    } else {
      read_converted(reader, range);
    }
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
      for (const FlatState& state : states) add(index, state);
    }
    load_added();
  }

  void load_buffers() {
    for (NamedBuffer& buffer : buffers_of(spread_.model)) {
      keep_error([&] {
        const StateTensor& wanted = buffer.description;
        const std::string name = kModelPrefix + wanted.name;
        const StoredTensor* stored = find_tensor(reader_, name, wanted.shape, wanted.type);
        const at::Tensor values = at::empty(wanted.shape, wanted.type);
        const auto check = [&](const at::Tensor& read) {
          check_values(reader_, name, *stored, read, /*may_be_infinite=*/true);
        };
        read_values(reader_, {{stored, 0, values.numel(), values.view({-1}), check}});
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

  // A state of a unit that is read with others, because threads share what is read at once.
  struct AddedState {
    std::size_t unit;
    const FlatState* state;
    at::Tensor own;  // this rank's share of the unit's updated() part, on the host
  };

  // What all ranks hold alike is read once on each node: each rank reads a share, and they send it on.
  void add(std::size_t index, const FlatState& state) {
    constexpr std::size_t kBytesAtOnce = std::size_t{256} << 20;
    const FlatUnit& unit = spread_.engine.units()[index];
    const FlatRange held = unit.updated();
    const std::int64_t num_shares = num_shares_of(unit), place = num_shares == 1 ? 0 : spread_.world.node().rank();
    const std::int64_t share = (held.numel() + num_shares - 1) / num_shares;
    const AddedState& added =
        added_.emplace_back(AddedState{index, &state, at::zeros({share}, state.part(index).type())});
    keep_error([&] {
      add_range(unit, state.prefix, intersect(held, {held.begin + place * share, held.begin + (place + 1) * share}),
                added.own);
    });
    added_bytes_ += added.own.nbytes();
    if (added_bytes_ >= kBytesAtOnce) load_added();
  }

  void load_added() {
    keep_error([&] { read_values(reader_, ranges_); });
    ranges_.clear();
    for (const AddedState& added : added_) added.state->replace_part(added.unit, gathered(added));
    added_.clear();
    added_bytes_ = 0;
  }

  std::int64_t num_shares_of(const FlatUnit& unit) const { return unit.is_part() ? 1 : spread_.world.node().size(); }

  // Of the unit's updated() part.
  at::Tensor gathered(const AddedState& added) {
    const FlatUnit& unit = spread_.engine.units()[added.unit];
    const std::int64_t num_shares = num_shares_of(unit), share = added.own.numel();
    if (num_shares == 1 || share == 0) return added.own;
    const at::Tensor all = at::empty({num_shares * share}, added.own.options().device(spread_.world.device()));
    spread_.world.node().all_gather(all, added.own.to(all.device()), "loading")->wait();
    return all.narrow(0, 0, unit.updated().numel());
  }

  void add_range(const FlatUnit& unit, const std::string& prefix, FlatRange held, const at::Tensor& part) {
    for (const FlatSlot& slot : unit.layout().slots()) {
      const std::string name = prefix + slot.name;
      const StoredTensor* tensor = find_tensor(reader_, name, slot.shape, part.scalar_type());
      const FlatRange own = intersect(held, {slot.offset, slot.offset + slot.numel});
      if (own.empty()) continue;
      const auto check = [this, is_of_model = prefix == kModelPrefix, name, tensor](const at::Tensor& read) {
        if (is_of_model) check_values(reader_, name, *tensor, read, /*may_be_infinite=*/false);
      };
      ranges_.push_back({tensor, own.begin - slot.offset, own.end - slot.offset,
                         part.narrow(0, own.begin - held.begin, own.numel()), check});
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
  std::vector<AddedState> added_;
  std::vector<ValueRange> ranges_;  // of all of them
  std::size_t added_bytes_ = 0;
  std::exception_ptr error_;
};

void load_all(const SpreadModel& spread, CheckpointReader& reader, const std::vector<FlatState>& states,
              bool reads_optimizer) {
  const at::NoGradGuard no_gradients;
  spread.guarded("loading", [&] {
    StateLoader loader(spread, reader, reads_optimizer);
    loader.load_buffers();
    loader.load_states(states);
    loader.finish();
  });
}

}  // namespace

void read_model_state(const SpreadModel& spread, CheckpointReader& reader) {
  load_all(spread, reader, {checkpoint_parameters(spread.engine)}, /*reads_optimizer=*/false);
}

OptimizerProgress read_state(const SpreadModel& spread, const TrainStep& step, CheckpointReader& reader) {
  load_all(spread, reader, checkpoint_states(spread.engine, step.optimizer()), /*reads_optimizer=*/true);
  return progress_of(step, (reader.folder() / kIndexFile).string(), [&](const std::string& name) {
    const auto found = reader.index().numbers.find(name);
    return found == reader.index().numbers.end() ? std::nullopt : std::optional<double>(found->second);
  });
}

}  // namespace tessera
