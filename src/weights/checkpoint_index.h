// The index of a checkpoint that all ranks wrote: state.index.json, docs/formats.md. (no torch)
//
// It lists every file of the checkpoint with the checksums of its blocks, and every tensor with the parts of it that
// lie in those files. A part is a range of the tensor's elements in row-major order: ranks hold flat ranges, which are
// no rectangles of a tensor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/json.h"
#include "weights/weight_entry.h"

namespace tessera {

inline constexpr const char* kIndexFile = "state.index.json";
inline constexpr const char* kModelPrefix = "model.";          // of parameters and buffers
inline constexpr const char* kOptimizerPrefix = "optimizer.";  // of its states: "optimizer.exp_avg.lm_head.weight"

// Numbers of the optimizer and the loss scale, by name.
inline constexpr const char* kNumUpdates = "num_updates";
inline constexpr const char* kLossScale = "loss_scale";
inline constexpr const char* kNumCleanSteps = "num_clean_steps";
inline constexpr const char* kHysteresis = "hysteresis";

// A range of a file with its CRC-32: torch.save's archives have one per record.
struct StoredRecord {
  std::int64_t offset = 0, bytes = 0;
  std::uint32_t checksum = 0;
};

struct StoredFile {
  std::int64_t bytes = 0;
  std::vector<std::string> checksums;   // of its blocks; none in a checkpoint of another program
  std::vector<StoredRecord> records{};  // of such a checkpoint
};

struct StoredPart {
  std::string file;
  std::int64_t begin = 0, end = 0;  // elements of the tensor
  std::int64_t offset = 0;          // of the first one, in bytes from the file's start
};

struct StoredTensor {
  WeightType type = WeightType::kF32;
  std::vector<std::int64_t> shape;
  std::vector<StoredPart> parts;  // in order, without gaps
};

struct CheckpointIndex {
  std::int64_t step = 0;
  int num_ranks = 1;
  std::map<std::string, StoredFile> files;
  std::map<std::string, StoredTensor> tensors;
  std::map<std::string, std::string> other_names;  // of a model's tied parameters, with the name that has the values
  std::map<std::string, double> numbers;           // of the optimizer and the loss scale
};

// What one rank contributes, for the others: files and tensors.
std::string contribution_text(const CheckpointIndex& own);
// Adds another rank's. Throws Error where it does not fit what is there.
void add_contribution(CheckpointIndex& index, const std::string& text);

// The whole file, ending with a checksum of itself.
std::string index_text(const CheckpointIndex& index);
// Throws UsageError naming `origin` if the text is damaged, of another version, or speaks of bytes that no file has.
CheckpointIndex parse_index(const std::string& text, const std::string& origin);
// Of an index without checksums: sorts the parts of tensors. Throws UsageError naming `origin` and the tensor if parts
// have gaps or lie outside of their files.
void check_index(CheckpointIndex& index, const std::string& origin);

}  // namespace tessera
