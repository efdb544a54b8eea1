#include "state/resume.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "comm/exchange.h"
#include "core/error.h"
#include "core/host.h"
#include "core/log.h"
#include "core/text.h"
#include "state/checkpoint_folder.h"
#include "state/sharded_state.h"
#include "state/unit_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Why it cannot be resumed from; nothing if it can. Ranks share the reading. Collective.
std::string fault_of(World& world, const Checkpoint& checkpoint, bool is_named = false) {
  try {
    on_every_rank(world, [&] { checkpoint.check(world.rank(), world.size(), /*accepts_foreign=*/is_named); });
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

// The first of them without a fault; `skip` hears of the others.
std::optional<Checkpoint> first_intact(World& world, const std::vector<fs::path>& folders,
                                       const std::function<void(const std::string&)>& skip) {
  for (const fs::path& folder : folders) {
    const Checkpoint checkpoint = Checkpoint::open(folder);
    const std::string fault = fault_of(world, checkpoint);
    if (fault.empty()) return checkpoint;
    skip(fault);
  }
  return std::nullopt;
}

CheckpointReader reader_of(const SpreadModel& spread, const Checkpoint& checkpoint) {
  std::optional<CheckpointReader> reader;
  on_every_rank(spread.world, [&] { reader.emplace(checkpoint.reader(spread)); });
  return std::move(*reader);
}

}  // namespace

std::optional<Checkpoint> checkpoint_to_resume(World& world, const OutputSettings& output) {
  if (!output.resume_from_checkpoint.empty()) {
    fs::path folder = output.resume_from_checkpoint;
    if (!folder.has_filename()) folder = folder.parent_path();  // "out/checkpoint-93/"
    const Checkpoint checkpoint = Checkpoint::open(folder);
    const std::string fault = fault_of(world, checkpoint, /*is_named=*/true);
    if (fault.empty()) return checkpoint;
    std::vector<fs::path> others = shared_list(world, folder.parent_path());
    std::erase(others, folder);
    const auto intact = first_intact(world, others, [](const std::string&) {});
    throw UsageError(fmt::format("--resume_from_checkpoint {}: {}{}", folder.string(), fault,
                                 intact ? fmt::format("; {} is complete", intact->folder().string()) : ""));
  }
  if (!output.resume_from_latest) return std::nullopt;
  const auto warn = [&](const std::string& fault) {
    if (world.rank() == 0) log_warn("skipped: {}", fault);
  };
  const auto latest = first_intact(world, shared_list(world, output.output_dir), warn);
  if (latest) return latest;
  throw UsageError(
      fmt::format("--resume_from_checkpoint true: {} has no checkpoint to resume from", output.output_dir));
}

void resume(World& world, Trainer& trainer, const SavedModel& model, const Checkpoint& checkpoint,
            const RunState& state) {
  const SpreadModel spread{world, trainer.step().engine(), model.model};
  const fs::path& folder = checkpoint.folder();
  if (!checkpoint.is_read_in_parts()) {
    trainer.restore(state, read_optimizer_file(spread, trainer.step(), folder / kOptimizerFile).scale);
    return;
  }
  const double began = steady_seconds();
  CheckpointReader reader = reader_of(spread, checkpoint);
  trainer.restore(state, read_state(spread, trainer.step(), reader).scale);
  if (world.rank() == 0) log_info("{}: read in {:.2f} s", folder.filename().string(), steady_seconds() - began);
}

void load_checkpoint_weights(World& world, Engine& engine, const SavedModel& model, const fs::path& folder) {
  const SpreadModel spread{world, engine, model.model};
  const Checkpoint checkpoint = Checkpoint::open(folder);
  if (!checkpoint.is_read_in_parts()) return read_weights_file(spread, folder / kWeightsFile);
  CheckpointReader reader = reader_of(spread, checkpoint);
  read_model_state(spread, reader);
}

}  // namespace tessera
