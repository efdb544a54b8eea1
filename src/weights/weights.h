// The weights of a model on disk: one file or several shards, safetensors or torch.save's, as one list of tensors.
// Opening reads only headers, however large the files are; of a checkpoint, whose tensors lie in parts, all of the
// model.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weights/mapped_file.h"
#include "weights/weight_entry.h"

namespace tessera {

enum class WeightFormat { kSafetensors, kTorch };

class CheckpointReader;

class Weights {
 public:
  // A file (.safetensors; .bin, .pth, .pt) or a model folder, in which the first of these is used, as in transformers:
  // model.safetensors, model.safetensors.index.json, pytorch_model.bin, pytorch_model.bin.index.json; then
  // state.index.json: the parameters and buffers of a checkpoint, which are put together in memory; so are those of
  // another program's (foreign/foreign_checkpoint.h). An index and its shards must agree on every tensor. Throws
  // UsageError naming the file and the tensor.
  static Weights open(const std::filesystem::path& file_or_folder);
  Weights(Weights&&) = default;
  Weights& operator=(Weights&&) = default;

  WeightFormat format() const { return format_; }
  const std::vector<WeightEntry>& entries() const { return entries_; }
  const WeightEntry* find(std::string_view name) const;  // nullptr: no such tensor
  const std::vector<std::shared_ptr<const MappedFile>>& files() const { return files_; }
  const std::map<std::string, std::string>& metadata() const {
    return metadata_;
  }  // safetensors; an earlier file first

  // Tied names, each with the name that holds its data: in pickles all but the first name of the same data, in
  // safetensors those listed in the metadata (safetensors' save_model and our writer list them there).
  std::vector<std::pair<std::string, std::string>> ties() const;

 private:
  Weights() = default;
  void add_file(const std::filesystem::path& path);
  void add_shards(const std::filesystem::path& index);
  void add_checkpoint(CheckpointReader reader);
  void index_names();

  WeightFormat format_ = WeightFormat::kSafetensors;
  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<WeightEntry> entries_;
  std::unordered_map<std::string_view, std::size_t> by_name_;  // keys are the entries' own names
  std::map<std::string, std::string> metadata_;
};

at::ScalarType scalar_type(WeightType type);
WeightType weight_type(at::ScalarType type);  // throws Error for types that no weight file holds (complex, quantised)

// A view of the mapped file: nothing is read until its elements are. It keeps its file mapped, even beyond the Weights.
// For reading only; writes stay in this process. (A copy if the file's data is not aligned.)
at::Tensor tensor_of(const Weights& weights, const WeightEntry& entry);
// Throws UsageError with the nearest name if there is no such tensor.
at::Tensor tensor_of(const Weights& weights, std::string_view name);

}  // namespace tessera
