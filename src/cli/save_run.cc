#include "cli/save_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <optional>

#include "checkpoint/model_folder.h"
#include "core/error.h"
#include "core/file.h"
#include "library/agreement.h"
#include "library/weights_file.h"
#include "train/checkpoint_rotation.h"
#include "train/rank_sums.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kStateFile = "trainer_state.json";
constexpr const char* kLossScale = "tessera.loss_scale";
constexpr const char* kNumCleanSteps = "tessera.num_clean_steps";
constexpr const char* kHysteresis = "tessera.hysteresis";

bool is_complete(const fs::path& checkpoint) {
  std::error_code ignored;
  return fs::exists(checkpoint / kOptimizerFile, ignored) && fs::exists(checkpoint / kStateFile, ignored);
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw UsageError(fmt::format("cannot make the folder {}: {}", folder.string(), error.message()));
}

Json saved_config(Json config) {
  config["torch_dtype"] = "float32";
  if (config.contains("dtype")) config["dtype"] = "float32";
  return config;
}

void write_states(const SpreadModel& spread, const std::vector<FlatState>& states, const fs::path& file,
                  const std::map<std::string, std::string>& metadata = {}) {
  std::optional<StateWriter> writer;  // rank 0's
  on_first_rank(spread.world, [&] { writer.emplace(file, describe(spread, states), metadata); });
  write_units(spread, states, writer);
  on_first_rank(spread.world, [&] { writer->finish(); });
}

void write_optimizer(const SpreadModel& spread, Trainer& trainer, const fs::path& file) {
  const std::vector<FlatState> states = moments_of(spread.engine, trainer.optimizer());
  std::map<std::string, std::string> metadata{
      {"tessera.num_updates", fmt::to_string(trainer.optimizer().num_updates())}};
  if (trainer.scaler()) {
    const LossScaler::State& scale = trainer.scaler()->state();
    metadata.emplace(kLossScale, fmt::to_string(scale.scale));
    metadata.emplace(kNumCleanSteps, fmt::to_string(scale.num_clean_steps));
    metadata.emplace(kHysteresis, fmt::to_string(scale.hysteresis));
  }
  write_states(spread, states, file, metadata);
}

void remove_old_checkpoints(const fs::path& output_dir, std::optional<std::int64_t> best_step, std::int64_t limit) {
  const std::vector<std::int64_t> steps = find_checkpoints(output_dir);
  for (const std::int64_t step : checkpoints_to_delete(steps, best_step, limit)) {
    fs::remove_all(output_dir / checkpoint_name(step));
  }
}

}  // namespace

void prepare_output_folder(World& world, const fs::path& folder) {
  on_first_rank(world, [&] {
    make_folder(folder);
    const fs::path probe = folder / fmt::format(".probe-{}", ::getpid());
    try {
      write_file_atomically(probe, "");
    } catch (const Error& error) {
      throw UsageError(fmt::format("--output_dir {}: {}", folder.string(), error.what()));
    }
    std::error_code ignored;
    fs::remove(probe, ignored);
  });
}

void save_model_folder(World& world, Engine& engine, const SavedModel& model, const fs::path& folder) {
  const SpreadModel spread{world, engine, model.model};
  on_first_rank(world, [&] { make_folder(folder); });
  engine.sync_buffers();
  write_weights_file(spread, folder / "model.safetensors");
  on_first_rank(world, [&] {
    for (const FileToCopy& file : model.files) {
      std::error_code ignored;
      if (fs::equivalent(file.from, folder / file.name, ignored)) continue;
      write_file_atomically(folder / file.name, read_file(file.from));
    }
    const auto generation = model.generation_config ? model.generation_config : generation_config_of(model.config);
    if (generation) write_file_atomically(folder / "generation_config.json", generation->dump(2) + "\n");
    write_file_atomically(folder / "config.json", saved_config(model.config).dump(2) + "\n");
  });
}

fs::path CheckpointKeeper::folder_of(std::int64_t step) const {
  return fs::path(output_.output_dir) / checkpoint_name(step);
}

std::optional<fs::path> CheckpointKeeper::best() const {
  return best_step_ ? std::optional(folder_of(*best_step_)) : std::nullopt;
}

void CheckpointKeeper::remember_best(const RunState& state) {
  std::error_code ignored;
  if (!state.best_step || state.best_checkpoint.empty() || !fs::exists(folder_of(*state.best_step), ignored)) return;
  best_step_ = state.best_step;
  saved_.insert(*best_step_);
}

void CheckpointKeeper::save(Trainer& trainer) {
  RunState& state = trainer.state();
  const fs::path folder = folder_of(state.step);
  const fs::path part = fs::path(output_.output_dir) / fmt::format(".{}.part", checkpoint_name(state.step));
  on_first_rank(world_, [&] { fs::remove_all(part); });  // of a run that was killed
  saved_.insert(state.step);
  if (state.best_step && saved_.contains(*state.best_step)) {
    best_step_ = state.best_step;
    state.best_checkpoint = folder_of(*best_step_).string();
  }
  try {
    write(trainer, part);
  } catch (...) {
    std::error_code ignored;
    if (world_.rank() == 0) fs::remove_all(part, ignored);  // a disk that is full needs the room
    throw;
  }
  on_first_rank(world_, [&] {
    fs::remove_all(folder);  // of an earlier run into the same folder
    fs::rename(part, folder);
    remove_old_checkpoints(output_.output_dir, best_step_, output_.save_total_limit);
  });
  listeners_.on_save(trainer.now(), folder);
}

void CheckpointKeeper::write(Trainer& trainer, const fs::path& folder) const {
  save_model_folder(world_, trainer.engine(), model_, folder);
  if (output_.save_only_model) return;
  write_optimizer({world_, trainer.engine(), model_.model}, trainer, folder / kOptimizerFile);
  on_first_rank(world_, [&] { write_run_state(folder / kStateFile, trainer.state()); });
}

std::optional<fs::path> checkpoint_to_resume(const OutputSettings& output) {
  if (!output.resume_from_checkpoint.empty()) {
    const fs::path folder = output.resume_from_checkpoint;
    if (is_complete(folder)) return folder;
    throw UsageError(fmt::format("--resume_from_checkpoint {}: no checkpoint to go on with: it needs {} and {}",
                                 folder.string(), kOptimizerFile, kStateFile));
  }
  if (!output.resume_from_latest) return std::nullopt;
  const std::vector<std::int64_t> steps = find_checkpoints(output.output_dir);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const fs::path folder = fs::path(output.output_dir) / checkpoint_name(*step);
    if (is_complete(folder)) return folder;
  }
  throw UsageError(fmt::format("--resume_from_checkpoint true: {} has no checkpoint to go on with", output.output_dir));
}

RunState read_checkpoint_state(const fs::path& checkpoint) {
  return read_run_state(checkpoint / kStateFile);
}

void resume(World& world, Trainer& trainer, const SavedModel& model, const fs::path& checkpoint,
            const RunState& state) {
  const SpreadModel spread{world, trainer.engine(), model.model};
  const std::vector<FlatState> states = moments_of(spread.engine, trainer.optimizer());
  std::optional<StateReader> reader;        // rank 0's
  std::vector<double> numbers = {0, 0, 0};  // of the loss scale; the others have none and get rank 0's
  on_first_rank(world, [&] {
    reader.emplace(checkpoint / kOptimizerFile, describe(spread, states), "optimizer's state does");
    if (!trainer.scaler()) return;
    const LossScaler::State& now = trainer.scaler()->state();  // stays where the file is of a run in another type
    numbers = {reader->number(kLossScale, now.scale),
               reader->number(kNumCleanSteps, static_cast<double>(now.num_clean_steps)),
               reader->number(kHysteresis, static_cast<double>(now.hysteresis))};
  });
  read_units(spread, states, reader);
  numbers = sum_over_ranks(world, numbers);
  trainer.restore(state, LossScaler::State{numbers[0], static_cast<std::int64_t>(numbers[1]),
                                           static_cast<std::int64_t>(numbers[2])});
}

void load_checkpoint_weights(World& world, Engine& engine, const SavedModel& model, const fs::path& folder) {
  const SpreadModel spread{world, engine, model.model};
  read_weights_file(spread, folder / "model.safetensors");
}

}  // namespace tessera
