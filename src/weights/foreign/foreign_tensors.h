// The known programs' folders, and what they share: a collector of tensors, with names without what wrappers add and
// files with their sizes.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weights/foreign/foreign_checkpoint.h"
#include "weights/foreign/pickled_file.h"
#include "weights/weight_entry.h"

namespace tessera {

bool has_file(const std::filesystem::path& folder, const std::string& name);

// Without the parts that torch.compile, FSDP and checkpointing wrappers put into names.
std::string unwrapped_name(std::string name);

class ForeignTensors {
 public:
  explicit ForeignTensors(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  ForeignCheckpoint& checkpoint() { return checkpoint_; }

  // A file by its path within the folder. Throws UsageError if it is missing.
  void add_file(const std::string& file);
  // What of that file has checksums.
  void add_records(const std::string& file, const PickledFile& opened);
  // Both of them, for a file that is a pickle or torch.save's.
  std::unique_ptr<PickledFile> open(const std::string& file);
  // A tensor that lies in a file of add_file().
  static StoredTensor stored(const std::string& file, const WeightEntry& entry);

  void add_model(const std::string& name, StoredTensor tensor);
  // `parameter`: a name, or a number of the optimizer's.
  void add_state(const std::string& state, const std::string& parameter, StoredTensor tensor);
  // An optimizer's state dict: {'state': {parameter: {...}}, 'param_groups': [...]}, in a file of add_file().
  void add_optimizer(const PickledNode& state_dict, const std::string& file);
  // How often a parameter was updated: the same for all, or UsageError.
  void set_num_updates(double number, const std::string& origin);
  void add_number(const char* name, double number) { checkpoint_.index.numbers[name] = number; }

  // What was added, checked: every part lies in its file.
  ForeignCheckpoint finish();

 private:
  void add(const std::string& name, StoredTensor tensor);

  std::filesystem::path folder_;
  ForeignCheckpoint checkpoint_;
};

// checkpoint-STEP of Hugging Face's Trainer: a model folder, optimizer.pt (under FSDP with whole states optimizer.bin),
// scheduler.pt, and with fp16 scaler.pt.

bool is_trainer_folder(const std::filesystem::path& folder);
ForeignCheckpoint open_trainer_folder(const std::filesystem::path& folder);

// The schedule's place and the loss scale, from files that the Trainer writes beside every kind of checkpoint; what is
// not there is left as it is.
void read_trainer_progress(ForeignTensors& tensors);

// Folders of torch.distributed.checkpoint: .metadata says which bytes of which .distcp file hold which part of which
// tensor. accelerate writes two of them for a model under FSDP, pytorch_model_fsdp_0 and optimizer_0.

bool is_dcp_folder(const std::filesystem::path& folder);
ForeignCheckpoint open_dcp_folder(const std::filesystem::path& folder);

bool is_accelerate_folder(const std::filesystem::path& folder);
ForeignCheckpoint open_accelerate_folder(const std::filesystem::path& folder);

// DeepSpeed's checkpoints under ZeRO 1, 2 and 3: `latest` names a folder in which every rank has a file with its
// partition of the float32 parameters and of the optimizer's states. A partition is flat: pieces of parameters, one
// after another.

bool is_deepspeed_folder(const std::filesystem::path& folder);  // with `latest`, or the one that it names
ForeignCheckpoint open_deepspeed_folder(const std::filesystem::path& folder);

}  // namespace tessera
