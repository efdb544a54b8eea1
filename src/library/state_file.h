// A safetensors file written and read tensor by tensor, without ever holding all of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/output_file.h"
#include "checkpoint/weights.h"

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
  // fit. A batch norm's num_batches_tracked may be missing.
  StateReader(const std::filesystem::path& path, const std::vector<StateTensor>& tensors);

  // A view of the file, in the file's type; nothing for what is missing and may be.
  std::optional<at::Tensor> tensor(const StateTensor& wanted) const;

 private:
  const WeightEntry* find(const StateTensor& wanted) const;

  Weights weights_;
};

}  // namespace tessera
