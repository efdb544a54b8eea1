#include "cli/save_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <optional>

#include "checkpoint/model_folder.h"
#include "core/error.h"
#include "core/file.h"
#include "library/agreement.h"
#include "library/unit_file.h"
#include "train/checkpoint_rotation.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

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
    metadata.emplace("tessera.loss_scale", fmt::to_string(scale.scale));
    metadata.emplace("tessera.num_clean_steps", fmt::to_string(scale.num_clean_steps));
    metadata.emplace("tessera.hysteresis", fmt::to_string(scale.hysteresis));
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

void save_model_folder(World& world, Engine& engine, const QaModel& model, const fs::path& folder) {
  const SpreadModel spread{world, engine, *model.model};
  on_first_rank(world, [&] { make_folder(folder); });
  write_states(spread, {parameters_of(engine)}, folder / "model.safetensors");
  on_first_rank(world, [&] {
    for (const FileToCopy& file : model.tokenizer_files) {
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
  save_model_folder(world_, trainer.engine(), model_, part);
  if (!output_.save_only_model) {
    write_optimizer({world_, trainer.engine(), *model_.model}, trainer, part / "optimizer.safetensors");
  }
  on_first_rank(world_, [&] {
    if (!output_.save_only_model) write_run_state(part / "trainer_state.json", state);
    fs::remove_all(folder);  // of an earlier run into the same folder
    fs::rename(part, folder);
    remove_old_checkpoints(output_.output_dir, best_step_, output_.save_total_limit);
  });
  listeners_.on_save(trainer.now(), folder);
}

void load_checkpoint_weights(World& world, Engine& engine, const QaModel& model, const fs::path& folder) {
  const SpreadModel spread{world, engine, *model.model};
  const std::vector<FlatState> states{parameters_of(engine)};
  std::optional<StateReader> reader;  // rank 0's
  on_first_rank(world, [&] { reader.emplace(folder / "model.safetensors", describe(spread, states)); });
  read_units(spread, states, reader);
}

}  // namespace tessera
