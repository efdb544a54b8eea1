// A safetensors file written and read tensor by tensor, without ever holding all of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/output_file.h"
#include "weights/weights.h"

namespace tessera {

// What is to be in the file, or must be.
struct StateTensor {
  std::string name;
  std::vector<std::string> other_names{};  // of the same tensor
  std::vector<std::int64_t> shape{};
  at::ScalarType type = at::kFloat;
};

class StateWriter {
 public:
  // The tensors come in this order. Throws Error where the file cannot be made.
  StateWriter(const std::filesystem::path& path, const std::vector<StateTensor>& tensors,
              std::map<std::string, std::string> metadata = {});

  void add(const at::Tensor& tensor);  // the next; any device
  void finish();                       // the file appears under its name

 private:
  std::vector<StateTensor> tensors_;
  OutputFile file_;
  std::size_t num_added_ = 0;
};

class StateReader {
 public:
  // The file must hold exactly these tensors, each under one of its names; throws UsageError naming all that do not
  // fit. A batch norm's num_batches_tracked may be missing. `what` is what messages call them, with a verb.
  StateReader(const std::filesystem::path& path, const std::vector<StateTensor>& tensors,
              const std::string& what = "weights do");

  // By a tensor's first name: only those that may be missing need be asked for.
  bool has(const std::string& name) const { return entry_of_.contains(name); }
  // A view of the file, in the file's type.
  at::Tensor tensor(const std::string& name) const;
  // A number of the metadata. Throws UsageError where it is none, or is missing and has no preset.
  double number(const std::string& key, std::optional<double> preset = {}) const;

 private:
  std::filesystem::path path_;
  Weights weights_;
  std::unordered_map<std::string, const WeightEntry*> entry_of_;
};

}  // namespace tessera
