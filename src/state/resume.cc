#include "state/resume.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "comm/exchange.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "state/checkpoint_folder.h"
#include "state/foreign_state.h"
#include "state/optimizer_file.h"
#include "state/read_state.h"
#include "state/weights_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Why it cannot be resumed from; nothing if it can. Ranks share the reading. One of another program only if the user
// named it: a run's own checkpoints are never mistaken for one. Collective.
std::string fault_of(World& world, const fs::path& checkpoint, bool is_named = false) {
  try {
    on_every_rank(world, [&] {
      if (is_named && !foreign_program(checkpoint).empty()) return check_foreign_checkpoint(checkpoint);
      check_checkpoint(checkpoint, world.rank(), world.size());
    });
    return "";
  } catch (const Error& error) {
    if (error.status() != ExitStatus::kUsage) throw;  // not the checkpoint's fault
    return error.what();
  }
}

// As rank 0 sees it.
std::vector<fs::path> shared_list(World& world, const fs::path& output_dir) {
  std::string names;
  on_first_rank(world, [&] {
    for (const fs::path& each : checkpoints_in(output_dir)) names += each.filename().string() + "\n";
  });
  std::vector<fs::path> folders;
  for (const std::string& name : split(text_of_first_rank(world, names, "checkpoints"), '\n')) {
    if (!name.empty()) folders.push_back(output_dir / name);
  }
  return folders;
}

// The first of them without a fault; `pass_over` hears of the others.
std::optional<fs::path> first_intact(World& world, const std::vector<fs::path>& folders,
                                     const std::function<void(const std::string&)>& pass_over) {
  for (const fs::path& folder : folders) {
    const std::string fault = fault_of(world, folder);
    if (fault.empty()) return folder;
    pass_over(fault);
  }
  return std::nullopt;
}

// Of what all ranks wrote, or of another program's.
CheckpointReader reader_of(const SpreadModel& spread, const fs::path& checkpoint) {
  std::optional<CheckpointReader> reader;
  on_every_rank(spread.world, [&] {
    if (has_sharded_weights(checkpoint)) {
      reader.emplace(checkpoint);
    } else {
      reader.emplace(foreign_reader(checkpoint, spread));
    }
  });
  return std::move(*reader);
}

}  // namespace

std::optional<fs::path> checkpoint_to_resume(World& world, const OutputSettings& output) {
  if (!output.resume_from_checkpoint.empty()) {
    fs::path folder = output.resume_from_checkpoint;
    if (!folder.has_filename()) folder = folder.parent_path();  // "out/checkpoint-93/"
    const std::string fault = fault_of(world, folder, /*is_named=*/true);
    if (fault.empty()) return folder;
    std::vector<fs::path> others = shared_list(world, folder.parent_path());
    std::erase(others, folder);
    const auto intact = first_intact(world, others, [](const std::string&) {});
    throw UsageError(fmt::format("--resume_from_checkpoint {}: {}{}", folder.string(), fault,
                                 intact ? fmt::format("; {} is complete", intact->string()) : ""));
  }
  if (!output.resume_from_latest) return std::nullopt;
  const auto warn = [&](const std::string& fault) {
    if (world.rank() == 0) log_warn("passed over: {}", fault);
  };
  const auto latest = first_intact(world, shared_list(world, output.output_dir), warn);
  if (latest) return latest;
  throw UsageError(
      fmt::format("--resume_from_checkpoint true: {} has no checkpoint to resume from", output.output_dir));
}

void resume(World& world, Trainer& trainer, const SavedModel& model, const fs::path& checkpoint,
            const RunState& state) {
  const SpreadModel spread{world, trainer.step().engine(), model.model};
  if (!ranks_read_parts_of(checkpoint)) {
    trainer.restore(state, read_optimizer_file(spread, trainer.step(), checkpoint / kOptimizerFile).scale);
    return;
  }
  const double began = steady_seconds();
  CheckpointReader reader = reader_of(spread, checkpoint);
  trainer.restore(state, read_state(spread, trainer.step(), reader).scale);
  if (world.rank() == 0) log_info("{}: read in {:.2f} s", checkpoint.filename().string(), steady_seconds() - began);
}

void load_checkpoint_weights(World& world, Engine& engine, const SavedModel& model, const fs::path& folder) {
  const SpreadModel spread{world, engine, model.model};
  if (!ranks_read_parts_of(folder)) return read_weights_file(spread, folder / kWeightsFile);
  CheckpointReader reader = reader_of(spread, folder);
  read_model_state(spread, reader);
}

}  // namespace tessera
