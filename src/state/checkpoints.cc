#include "state/checkpoints.h"

#include <fmt/format.h>

#include <optional>

#include "comm/exchange.h"
#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "state/checkpoint_rotation.h"
#include "state/optimizer_file.h"
#include "state/run_state_file.h"
#include "state/weights_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kStateFile = "trainer_state.json";

bool is_complete(const fs::path& checkpoint) {
  std::error_code ignored;
  const auto has = [&](const char* file) { return fs::exists(checkpoint / file, ignored); };
  return has(kWeightsFile) && has(kOptimizerFile) && has(kStateFile);
}

// A checkpoint that is being written or removed: ".checkpoint-93.part". A run that is killed may leave one behind.
fs::path unfinished(const fs::path& checkpoint) {
  return checkpoint.parent_path() / fmt::format(".{}.part", checkpoint.filename().string());
}
fs::path on_its_way_out(const fs::path& checkpoint) {
  return checkpoint.parent_path() / fmt::format(".{}.old.part", checkpoint.filename().string());
}

void remove_leftovers(const fs::path& output_dir) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(output_dir, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool is_checkpoint = name.starts_with(".checkpoint-") && name.ends_with(".part");
    const bool is_model = name.starts_with(fmt::format(".{}.part-", kWeightsFile));
    if (is_checkpoint || is_model) fs::remove_all(entry.path(), ignored);
  }
}

// Whenever the process is killed, a checkpoint is complete or absent. One that cannot be removed does not end the run.
void remove_checkpoint(const fs::path& checkpoint) {
  const fs::path aside = on_its_way_out(checkpoint);
  std::error_code error;
  fs::remove_all(aside, error);
  fs::rename(checkpoint, aside, error);
  if (!error) fs::remove_all(aside, error);
  if (error) log_warn("the old checkpoint {} could not be removed: {}", checkpoint.string(), error.message());
}

// When the process that wrote it started; 0 if the file does not say.
double writer_of(const fs::path& checkpoint) {
  try {
    return read_run_state(checkpoint / kStateFile).started;
  } catch (const Error&) {
    return 0;  // reported if it is the one to resume
  }
}

// The last checkpoint of the run that started last: an older run in the same folder may have got further.
std::optional<fs::path> latest_checkpoint(const fs::path& output_dir) {
  std::optional<fs::path> latest;
  double latest_writer = 0;
  for (const std::int64_t step : find_checkpoints(output_dir)) {
    const fs::path folder = output_dir / checkpoint_name(step);
    if (!is_complete(folder)) continue;
    const double writer = writer_of(folder);
    if (latest && writer < latest_writer) continue;
    latest = folder;
    latest_writer = writer;
  }
  return latest;
}

bool is_same(const fs::path& a, const fs::path& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

}  // namespace

CheckpointKeeper::CheckpointKeeper(World& world, const SavedModel& model, const OutputSettings& output,
                                   Listeners& listeners)
    : world_(world), model_(model), output_(output), listeners_(listeners) {
  if (world.rank() == 0) remove_leftovers(output.output_dir);
}

fs::path CheckpointKeeper::folder_of(std::int64_t step) const {
  return fs::path(output_.output_dir) / checkpoint_name(step);
}

// Rank 0 looks and shares the result, since the best checkpoint decides whether there is a collective.
void CheckpointKeeper::adopt(const fs::path& checkpoint, const RunState& state) {
  const std::vector<std::int64_t>& steps = state.checkpoints;
  const fs::path told = state.best_checkpoint;
  const fs::path beside = checkpoint.parent_path() / told.filename();    // if the folder has been moved
  constexpr std::size_t kNowhere = 0, kTold = 1, kBeside = 2, kOwn = 3;  // kOwn + i: the i-th of the steps
  std::vector<double> found(steps.size() + 1, 0.0);  // whether each one exists; last, where the best is
  if (world_.rank() == 0) {
    std::error_code ignored;
    const bool is_told = !told.empty() && fs::exists(told, ignored);
    const bool is_beside = !told.empty() && !is_told && fs::exists(beside, ignored);
    std::size_t place = is_told ? kTold : is_beside ? kBeside : kNowhere;
    const bool continues = is_in_folder(checkpoint, output_.output_dir);
    for (std::size_t i = 0; continues && i < steps.size(); ++i) {
      found[i] = fs::exists(folder_of(steps[i]), ignored) ? 1 : 0;
      if (place != kNowhere && is_same(is_told ? told : beside, folder_of(steps[i]))) place = kOwn + i;
    }
    found.back() = static_cast<double>(place);
  }
  found = sum_over_ranks(world_, found);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (found[i] > 0) kept_.insert(steps[i]);
  }
  const auto place = static_cast<std::size_t>(found.back());
  if (place != kNowhere) best_ = place == kTold ? told : place == kBeside ? beside : folder_of(steps[place - kOwn]);
}

// The steps to delete, now that a new one is kept.
std::vector<std::int64_t> CheckpointKeeper::take_out_old() {
  std::optional<std::int64_t> best_step;
  for (const std::int64_t step : kept_) {
    if (best_ == folder_of(step)) best_step = step;
  }
  const std::vector<std::int64_t> old =
      checkpoints_to_delete({kept_.begin(), kept_.end()}, best_step, output_.save_total_limit);
  for (const std::int64_t step : old) kept_.erase(step);
  return old;
}

void CheckpointKeeper::save(Trainer& trainer) {
  RunState& state = trainer.state();
  const fs::path folder = folder_of(state.step);
  const fs::path part = unfinished(folder);
  kept_.insert(state.step);
  if (state.best_step && kept_.contains(*state.best_step)) {
    best_ = folder_of(*state.best_step);
    state.best_checkpoint = best_->string();
  }
  const std::vector<std::int64_t> old = take_out_old();
  state.checkpoints.assign(kept_.begin(), kept_.end());
  try {
    write(trainer, part);
  } catch (...) {
    std::error_code ignored;
    if (world_.rank() == 0) fs::remove_all(part, ignored);  // a full disk needs the space
    throw;
  }
  on_first_rank(world_, [&] {
    if (fs::exists(folder)) remove_checkpoint(folder);  // from an earlier run in the same folder
    fs::rename(part, folder);
    flush_folder(folder.parent_path());
    for (const std::int64_t step : old) remove_checkpoint(folder_of(step));
  });
  std::vector<fs::path> kept;
  for (const std::int64_t step : kept_) kept.push_back(folder_of(step));
  listeners_.on_save(trainer.now(), {folder, kept});
}

void CheckpointKeeper::write(Trainer& trainer, const fs::path& folder) const {
  save_model_folder(world_, trainer.step().engine(), model_, folder);
  if (output_.save_only_model) return;
  write_optimizer_file({world_, trainer.step().engine(), model_.model}, trainer.step(), folder / kOptimizerFile);
  on_first_rank(world_, [&] { write_run_state(folder / kStateFile, trainer.state()); });
}

std::optional<fs::path> checkpoint_to_resume(const OutputSettings& output) {
  if (!output.resume_from_checkpoint.empty()) {
    fs::path folder = output.resume_from_checkpoint;
    if (!folder.has_filename()) folder = folder.parent_path();  // "out/checkpoint-93/"
    if (is_complete(folder)) return folder;
    throw UsageError(fmt::format("--resume_from_checkpoint {}: not a complete checkpoint: it needs {}, {} and {}",
                                 folder.string(), kWeightsFile, kOptimizerFile, kStateFile));
  }
  if (!output.resume_from_latest) return std::nullopt;
  if (const std::optional<fs::path> latest = latest_checkpoint(output.output_dir)) return latest;
  throw UsageError(
      fmt::format("--resume_from_checkpoint true: {} has no checkpoint to resume from", output.output_dir));
}

bool is_in_folder(const fs::path& checkpoint, const fs::path& output_dir) {
  return is_same(fs::absolute(checkpoint).lexically_normal().parent_path(), output_dir);
}

RunState read_checkpoint_state(const fs::path& checkpoint) {
  return read_run_state(checkpoint / kStateFile);
}

void resume(World& world, Trainer& trainer, const SavedModel& model, const fs::path& checkpoint,
            const RunState& state) {
  const SpreadModel spread{world, trainer.step().engine(), model.model};
  trainer.restore(state, read_optimizer_file(spread, trainer.step(), checkpoint / kOptimizerFile).scale);
}

void load_checkpoint_weights(World& world, Engine& engine, const SavedModel& model, const fs::path& folder) {
  const SpreadModel spread{world, engine, model.model};
  read_weights_file(spread, folder / kWeightsFile);
}

}  // namespace tessera
