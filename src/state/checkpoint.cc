#include "state/checkpoint.h"

#include <fmt/format.h>

#include <optional>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/text.h"
#include "model/language_model.h"
#include "state/checkpoint_folder.h"
#include "state/model_output.h"
#include "state/run_state_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// A checkpoint that lost its index is damaged, no model folder.
bool has_shards(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with("state-")) return true;
  }
  return false;
}

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
void add_up_losses(RunProgress& progress) {
  double total = 0, before = 0;
  for (const LogRecord& record : progress.history) {
    const auto loss = record.number("loss"), step = record.number("step");
    if (!loss || !step || *step > static_cast<double>(progress.step)) continue;
    total += *loss * (*step - before);
    before = *step;
  }
  progress.total_loss = total;
  progress.num_losses = static_cast<std::int64_t>(before);
}

RunState foreign_run_state(const fs::path& folder, const ForeignCheckpoint& checkpoint) {
  const auto num_updates = checkpoint.index.numbers.find(kNumUpdates);
  const bool is_counted = num_updates != checkpoint.index.numbers.end();
  RunState state;
  RunProgress& progress = state.progress;
  if (is_there(folder / kStateFile)) {
    state = read_run_state(folder / kStateFile);
    add_up_losses(progress);
  } else if (checkpoint.index.step > 0) {
    progress.step = checkpoint.index.step;
  } else if (is_counted) {
    progress.step = static_cast<std::int64_t>(num_updates->second);
  } else {
    throw UsageError(fmt::format("{}: nothing in it says after how many steps it was saved", folder.string()));
  }
  progress.num_advanced =
      checkpoint.num_advanced.value_or(is_counted ? static_cast<std::int64_t>(num_updates->second) : progress.step);
  return state;
}

}  // namespace

Checkpoint Checkpoint::open(fs::path folder) {
  Checkpoint checkpoint;
  checkpoint.folder_ = std::move(folder);
  const auto has = [&](const char* file) { return is_there(checkpoint.folder_ / file); };
  const bool has_state = has(kOptimizerFile) || has(kStateFile);
  if (has(kIndexFile)) {
    checkpoint.kind_ = Kind::kSharded;
  } else if (has(kWeightsFile) && has(kOptimizerFile) && has(kStateFile)) {
    checkpoint.kind_ = Kind::kWhole;
  } else if (checkpoint.program_ = foreign_program(checkpoint.folder_); !checkpoint.program_.empty()) {
    checkpoint.kind_ = Kind::kForeign;
  } else if ((has(kWeightsFile) || has("model.safetensors.index.json")) && !has_state &&
             !has_shards(checkpoint.folder_)) {
    checkpoint.kind_ = Kind::kModel;
  }
  return checkpoint;
}

const ForeignCheckpoint& Checkpoint::foreign() const {
  if (!foreign_) foreign_ = std::make_shared<const ForeignCheckpoint>(open_foreign_checkpoint(folder_));
  return *foreign_;
}

void Checkpoint::check(int rank, int num_ranks, bool accepts_foreign) const {
  if (kind_ == Kind::kWhole) return;
  const bool is_foreign = kind_ == Kind::kForeign && accepts_foreign;
  if (kind_ != Kind::kSharded && !is_foreign) refuse();
  CheckpointReader reader = is_foreign ? CheckpointReader(folder_, foreign().index) : CheckpointReader(folder_);
  reader.check_sizes();
  reader.verify(rank, num_ranks);
}

void Checkpoint::refuse() const {
  const std::string name = folder_.string();
  if (kind_ == Kind::kForeign) {
    throw UsageError(fmt::format("{} is a checkpoint of {}: name it to resume from it", name, program_));
  }
  if (!is_folder(folder_)) {
    throw UsageError(fmt::format("{}: there is no such folder; expected a checkpoint", name));
  }
  if (const std::vector<std::int64_t> inside = find_checkpoints(folder_); !inside.empty()) {
    throw UsageError(fmt::format("{} is no checkpoint, but has some: name one of them, like {}", name,
                                 (folder_ / checkpoint_name(inside.back())).string()));
  }
  if (kind_ == Kind::kModel) {
    throw UsageError(
        fmt::format("{} holds the model alone, without the state that a run resumes from (--save_only_model): start "
                    "from it by --model_name_or_path",
                    name));
  }
  throw UsageError(fmt::format("{} is not a complete checkpoint: it has no {}", name, kIndexFile));
}

RunState Checkpoint::run_state() const {
  if (kind_ == Kind::kForeign) return foreign_run_state(folder_, foreign());
  const fs::path file = folder_ / kStateFile;
  if (kind_ != Kind::kSharded) return read_run_state(file);
  return run_state_of(parse_json(CheckpointReader(folder_).text_of(kStateFile), file.string()), file.string());
}

CheckpointReader Checkpoint::reader(const SpreadModel& spread) const {
  if (kind_ == Kind::kSharded) return CheckpointReader(folder_);
  ForeignCheckpoint checkpoint = foreign();
  name_states(checkpoint, spread, folder_.string());
  leave_out_second_names(checkpoint.index, spread);
  checkpoint.index.numbers.try_emplace(kNumUpdates, 0);  // SGD does not count
  return {folder_, std::move(checkpoint.index)};
}

std::vector<std::string> Checkpoint::left_out() const {
  return kind_ == Kind::kForeign ? foreign().left : std::vector<std::string>();
}

}  // namespace tessera
