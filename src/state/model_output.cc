#include "state/model_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include "comm/exchange.h"
#include "core/error.h"
#include "core/file.h"
#include "state/unit_file.h"
#include "weights/model_folder.h"

namespace tessera {

namespace fs = std::filesystem;

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
