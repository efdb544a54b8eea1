#include "state/foreign_state.h"

#include <fmt/format.h>

#include <set>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "model/language_model.h"
#include "state/checkpoint_folder.h"
#include "state/run_state_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Names of trained parameters in the model's order, by how the optimizer treats them.
struct ParameterOrder {
  std::vector<std::string> all, decaying, plain;
};

ParameterOrder order_of(const SpreadModel& spread) {
  std::unordered_map<std::string, ParameterGroup> group_of;
  for (const FlatUnit& unit : spread.engine.units()) {
    for (const FlatSlot& slot : unit.layout().slots()) {
      for (const ParameterGroup group : {ParameterGroup::kDecaying, ParameterGroup::kPlain, ParameterGroup::kFrozen}) {
        const FlatRange range = unit.layout().range_of(group);
        if (slot.offset >= range.begin && slot.offset < range.end) group_of.emplace(slot.name, group);
      }
    }
  }
  ParameterOrder order;
  for (const auto& item : spread.model.named_parameters()) {
    const auto found = group_of.find(item.key());  // a second name of a tied one is not there
    if (found == group_of.end() || found->second == ParameterGroup::kFrozen) continue;
    order.all.push_back(item.key());
    (found->second == ParameterGroup::kDecaying ? order.decaying : order.plain).push_back(item.key());
  }
  return order;
}

// The parameters that the optimizer's groups would have in this model.
std::vector<std::vector<std::string>> groups_of(const ParameterOrder& order, std::size_t num_groups,
                                                const std::string& origin) {
  if (num_groups == 1) return {order.all};
  if (num_groups == 2) return {order.decaying, order.plain};
  throw UsageError(
      fmt::format("{}: its optimizer has {} groups of parameters; expected one, or one with and one "
                  "without weight decay",
                  origin, num_groups));
}

void name_states(ForeignCheckpoint& checkpoint, const SpreadModel& spread, const std::string& origin) {
  if (checkpoint.numbered.empty()) return;
  const auto groups = groups_of(order_of(spread), checkpoint.groups.size(), origin);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::vector<std::int64_t>& numbers = checkpoint.groups[g];
    if (numbers.size() != groups[g].size()) {
      throw UsageError(
          fmt::format("{}: group {} of its optimizer has {} parameters, this run's has {}: the checkpoint "
                      "is of another model or optimizer",
                      origin, g, numbers.size(), groups[g].size()));
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      for (auto& [state, tensor] : checkpoint.numbered[numbers[i]]) {
        checkpoint.index.tensors.emplace(fmt::format("{}{}.{}", kOptimizerPrefix, state, groups[g][i]),
                                         std::move(tensor));
      }
    }
  }
}

// A file may hold a tied parameter under each of its names.
void leave_out_second_names(CheckpointIndex& index, const SpreadModel& spread) {
  std::vector<std::pair<std::string, std::string>> ties;  // second name, name
  for (const auto& [name, others] : other_names_of(spread.model)) {
    for (const std::string& other : others) ties.emplace_back(other, name);
  }
  if (const auto* language_model = dynamic_cast<const LanguageModel*>(&spread.model)) {
    for (const auto& tie : language_model->tied_names()) ties.push_back(tie);
  }
  for (const auto& [other, name] : ties) {
    auto found = index.tensors.extract(kModelPrefix + other);
    if (found.empty() || index.tensors.contains(kModelPrefix + name)) continue;
    found.key() = kModelPrefix + name;
    index.tensors.insert(std::move(found));
  }
}

// A log line's loss is the mean since the line before. Losses after the last line are not known.
void add_up_losses(RunState& state) {
  double total = 0, before = 0;
  for (const LogRecord& record : state.history) {
    const auto loss = record.number("loss"), step = record.number("step");
    if (!loss || !step || *step > static_cast<double>(state.step)) continue;
    total += *loss * (*step - before);
    before = *step;
  }
  state.total_loss = total;
  state.num_losses = static_cast<std::int64_t>(before);
}

}  // namespace

void check_foreign_checkpoint(const fs::path& folder) {
  CheckpointReader(folder, open_foreign_checkpoint(folder).index).check_sizes();
}

RunState foreign_run_state(const fs::path& folder) {
  const ForeignCheckpoint checkpoint = open_foreign_checkpoint(folder);
  const auto num_updates = checkpoint.index.numbers.find(kNumUpdates);
  RunState state;
  std::error_code ignored;
  if (fs::exists(folder / kStateFile, ignored)) {
    state = read_run_state(folder / kStateFile);
    add_up_losses(state);
  } else if (checkpoint.index.step > 0) {
    state.step = checkpoint.index.step;
  } else if (num_updates != checkpoint.index.numbers.end()) {
    state.step = static_cast<std::int64_t>(num_updates->second);
  } else {
    throw UsageError(fmt::format("{}: nothing in it says after how many steps it was saved", folder.string()));
  }
  state.num_advanced = checkpoint.num_advanced.value_or(
      num_updates == checkpoint.index.numbers.end() ? state.step : static_cast<std::int64_t>(num_updates->second));
  return state;
}

CheckpointReader foreign_reader(const fs::path& folder, const SpreadModel& spread) {
  ForeignCheckpoint checkpoint = open_foreign_checkpoint(folder);
  name_states(checkpoint, spread, folder.string());
  leave_out_second_names(checkpoint.index, spread);
  checkpoint.index.numbers.try_emplace(kNumUpdates, 0);  // SGD does not count
  return {folder, std::move(checkpoint.index)};
}

}  // namespace tessera
