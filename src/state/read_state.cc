#include "state/read_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <set>

#include "comm/exchange.h"
#include "core/error.h"
#include "core/text.h"
#include "state/weights_file.h"
#include "weights/damaged_values.h"
#include "weights/weight_tensors.h"

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
  const Damage damage = damage_in(tensor.type, static_cast<const char*>(values.const_data_ptr()), values.numel());
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
  constexpr std::int64_t kPieceNumel = 16 << 20;  // of a second copy
  for (std::int64_t at = range.begin; at < range.end; at += kPieceNumel) {
    const std::int64_t end = std::min(at + kPieceNumel, range.end);
    const at::Tensor piece = at::empty({end - at}, scalar_type(range.tensor->type));
    reader.read({{range.tensor, at, end, static_cast<char*>(piece.mutable_data_ptr())}});
    range.check(piece);
    range.to.narrow(0, at - range.begin, piece.numel()).copy_(piece);
  }
}

void read_values(CheckpointReader& reader, const std::vector<ValueRange>& ranges) {
  std::vector<TensorRange> as_they_are;
  const auto has_its_type = [](const ValueRange& range) {
    return range.tensor->type == weight_type(range.to.scalar_type());
  };
  for (const ValueRange& range : ranges) {
    if (!has_its_type(range)) continue;
    as_they_are.push_back({range.tensor, range.begin, range.end, static_cast<char*>(range.to.mutable_data_ptr())});
  }
  reader.read(as_they_are);
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
      for (const FlatState& state : states) {
        state.replace_part(index, values_of(unit, state.prefix, state.part(index).type()));
      }
    }
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
    std::vector<ValueRange> ranges;
    for (const FlatSlot& slot : unit.layout().slots()) {
      const std::string name = prefix + slot.name;
      const StoredTensor* tensor = find_tensor(reader_, name, slot.shape, part.scalar_type());
      const FlatRange own = intersect(held, {slot.offset, slot.offset + slot.numel});
      if (own.empty()) continue;
      const auto check = [this, &prefix, name, tensor](const at::Tensor& read) {
        if (prefix == kModelPrefix) check_values(reader_, name, *tensor, read, /*may_be_infinite=*/false);
      };
      ranges.push_back({tensor, own.begin - slot.offset, own.end - slot.offset,
                        part.narrow(0, own.begin - held.begin, own.numel()), check});
    }
    read_values(reader_, ranges);
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

}  // namespace

void read_model_state(const SpreadModel& spread, CheckpointReader& reader) {
  const at::NoGradGuard no_gradients;
  spread.guarded("loading", [&] {
    StateLoader loader(spread, reader, /*reads_optimizer=*/false);
    loader.load_buffers();
    loader.load_states({checkpoint_parameters(spread.engine)});
    loader.finish();
  });
}

OptimizerProgress read_state(const SpreadModel& spread, const TrainStep& step, CheckpointReader& reader) {
  const at::NoGradGuard no_gradients;
  spread.guarded("loading", [&] {
    StateLoader loader(spread, reader, /*reads_optimizer=*/true);
    loader.load_buffers();
    loader.load_states(checkpoint_states(spread.engine, step.optimizer()));
    loader.finish();
  });
  return progress_of(step, (reader.folder() / kIndexFile).string(), [&](const std::string& name) {
    const auto found = reader.index().numbers.find(name);
    return found == reader.index().numbers.end() ? std::nullopt : std::optional<double>(found->second);
  });
}

}  // namespace tessera
