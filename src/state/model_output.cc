#include "state/model_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include "comm/exchange.h"
#include "core/error.h"
#include "core/file.h"
#include "state/checkpoint_folder.h"
#include "state/unit_file.h"
#include "weights/model_folder.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

bool is_started_again(const Environment& environment) {
  for (const char* count : {"SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT"}) {
    if (environment.find(count).value_or("0") != "0") return true;
  }
  return false;
}

}  // namespace

// Checkpoints alone are of a run that has not finished: a new run beside them replaces at most those of the same steps.
void check_replaces_no_model(const OutputSettings& output, const Environment& environment) {
  const bool resumes = output.resume_from_latest || !output.resume_from_checkpoint.empty();
  if (output.overwrites || resumes || is_started_again(environment)) return;
  const fs::path folder = output.output_dir;
  for (const char* name :
       {kWeightsFile, "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (!is_there(folder / name)) continue;
    const char* const resuming =
        find_checkpoints(folder).empty() ? "" : "; --resume_from_checkpoint true continues the run that wrote it";
    throw UsageError(
        fmt::format("--output_dir {} holds a finished model, {}, which this run would replace: give another folder, or "
                    "--overwrite_output_dir{}",
                    output.output_dir, name, resuming));
  }
}

void prepare_output_folder(World& world, const fs::path& folder) {
  on_first_rank(world, [&] {
    std::error_code reason;
    fs::create_directories(folder, reason);
    if (reason) throw UsageError(fmt::format("cannot create the folder {}: {}", folder.string(), reason.message()));
    const fs::path probe = folder / fmt::format(".probe-{}", ::getpid());
    try {
      write_file_atomically(probe, "");
    } catch (const Error& error) {
      throw UsageError(fmt::format("--output_dir {}: {}", folder.string(), error.what()));
    }
    fs::remove(probe, reason);
  });
}

void write_model_files(const SavedModel& model, const fs::path& folder) {
  for (const FileToCopy& file : model.files) {
    std::error_code ignored;
    if (fs::equivalent(file.from, folder / file.name, ignored)) continue;
    write_file_atomically(folder / file.name, read_file(file.from));
  }
  const auto generation = model.generation_config ? model.generation_config : generation_config_of(model.config);
  if (generation) write_file_atomically(folder / "generation_config.json", generation->dump(2) + "\n");
  write_file_atomically(folder / "config.json", with_weight_type(model.config, "float32").dump(2) + "\n");
}

void save_model_folder(World& world, Engine& engine, const SavedModel& model, const fs::path& folder) {
  const SpreadModel spread{world, engine, model.model};
  engine.sync_buffers();
  write_weights_file(spread, folder / kWeightsFile);
  on_first_rank(world, [&] { write_model_files(model, folder); });
}

}  // namespace tessera
