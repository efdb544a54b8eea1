#include <fmt/format.h>

#include "core/error.h"
#include "core/text.h"
#include "weights/foreign/foreign_tensors.h"
#include "weights/foreign/pickled_file.h"
#include "weights/weights.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr const char* kOptimizerFiles[] = {"optimizer.pt", "optimizer.bin"};
constexpr const char* kSchedule = "scheduler.pt";
constexpr const char* kScaler = "scaler.pt";
constexpr const char* kWholeFsdpModel = "pytorch_model_fsdp.bin";

void read_model(ForeignTensors& tensors) {
  const fs::path& folder = tensors.folder();
  const Weights weights = Weights::open(has_file(folder, kWholeFsdpModel) ? folder / kWholeFsdpModel : folder);
  for (const auto& file : weights.files()) {
    const std::string name = file->path().filename().string();
    tensors.add_file(name);
    if (file->bytes().starts_with("PK")) tensors.add_records(name, PickledFile(file->path()));
  }
  for (const WeightEntry& entry : weights.entries()) {
    const fs::path& path = weights.files()[entry.file]->path();
    if (!entry.is_contiguous()) {
      refuse_file(path.string(),
                  fmt::format("tensor '{}': its elements do not lie one after another", printable(entry.name)));
    }
    tensors.add_model(entry.name, ForeignTensors::stored(path.filename().string(), entry));
  }
}

void read_optimizer(ForeignTensors& tensors) {
  for (const char* name : kOptimizerFiles) {
    if (!has_file(tensors.folder(), name)) continue;
    return tensors.add_optimizer(tensors.open(name)->root(), name);
  }
  throw UsageError(fmt::format("{}: {} is missing: a run that was saved without its optimizer cannot be resumed",
                               tensors.folder().string(), kOptimizerFiles[0]));
}

}  // namespace

bool is_trainer_folder(const fs::path& folder) {
  for (const char* name : {kOptimizerFiles[0], kOptimizerFiles[1], kSchedule, "training_args.bin"}) {
    if (has_file(folder, name) && has_file(folder, "trainer_state.json")) return true;
  }
  return false;
}

void read_trainer_progress(ForeignTensors& tensors) {
  const fs::path& folder = tensors.folder();
  if (has_file(folder, kSchedule)) {
    const PickledFile file(folder / kSchedule);
    tensors.checkpoint().num_advanced = file.root().at("last_epoch").whole();
  }
  if (has_file(folder, kScaler)) {
    const PickledFile file(folder / kScaler);
    const auto scale = file.root().find("scale"), tracker = file.root().find("_growth_tracker");
    if (scale) tensors.add_number(kLossScale, scale->number());
    if (tracker) tensors.add_number(kNumCleanSteps, tracker->number());
  }
}

ForeignCheckpoint open_trainer_folder(const fs::path& folder) {
  ForeignTensors tensors(folder);
  read_model(tensors);
  read_optimizer(tensors);
  read_trainer_progress(tensors);
  return tensors.finish();
}

}  // namespace tessera
