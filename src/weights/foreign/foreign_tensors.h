// Collects the tensors of a foreign checkpoint: names without what wrappers add, files with their sizes.
#pragma once

#include <filesystem>
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
  // A part of a tensor that lies in a file of add_file().
  static StoredPart part_of(const std::string& file, const WeightEntry& entry);

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

}  // namespace tessera
