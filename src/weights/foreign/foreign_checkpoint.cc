#include "weights/foreign/foreign_checkpoint.h"

#include <fmt/format.h>

#include "core/error.h"
#include "weights/foreign/foreign_tensors.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

struct Program {
  const char* name;
  bool (*wrote)(const fs::path& folder);
  ForeignCheckpoint (*open)(const fs::path& folder);
  bool is_model_folder = false;
};

// In this order: the Trainer writes its own files beside DeepSpeed's and accelerate's too.
constexpr Program kPrograms[] = {
    {"DeepSpeed", is_deepspeed_folder, open_deepspeed_folder},
    {"accelerate's FSDP", is_accelerate_folder, open_accelerate_folder},
    {"torch.distributed.checkpoint", is_dcp_folder, open_dcp_folder},
    {"Hugging Face's Trainer", is_trainer_folder, open_trainer_folder, /*is_model_folder=*/true},
};

const Program* program_of(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder / kIndexFile, ignored)) return nullptr;  // ours
  for (const Program& program : kPrograms) {
    if (program.wrote(folder)) return &program;
  }
  return nullptr;
}

}  // namespace

std::string foreign_program(const fs::path& folder) {
  const Program* program = program_of(folder);
  return program == nullptr ? "" : program->name;
}

bool has_foreign_weights(const fs::path& folder) {
  const Program* program = program_of(folder);
  return program != nullptr && !program->is_model_folder;
}

ForeignCheckpoint open_foreign_checkpoint(const fs::path& folder) {
  const Program* program = program_of(folder);
  if (program == nullptr) throw UsageError(fmt::format("{}: not a checkpoint of a known program", folder.string()));
  ForeignCheckpoint checkpoint = program->open(folder);
  checkpoint.left.emplace_back("the states of Python's random generators: dropout draws other numbers");
  checkpoint.left.emplace_back("the optimizer's and the schedule's settings: this run's own are used");
  return checkpoint;
}

}  // namespace tessera
