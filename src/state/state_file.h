// Writes and reads a safetensors file tensor by tensor, never holding all of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/file.h"
#include "kernels/flat_buffers.h"
#include "parallel/offload.h"
#include "weights/weights.h"

namespace tessera {

// The bytes of tensors for a file. From a GPU they come in chunks, each while the one before is written, beside what
// else the GPU does.
class HostChunks {
 public:
  explicit HostChunks(at::Device device) : link_(device, /*pins=*/true) {}

  // Gives the bytes of flat numbers, on the device or the host, to `take`, in order; they are valid during the call.
  // What is queued on the current stream comes before the copies.
  void for_each(const kernels::SplitFloats& values, const std::function<void(std::string_view)>& take);

 private:
  HostLink link_;
  std::array<at::Tensor, 2> bounce_;  // page-locked; made when the first chunk comes from a GPU
};

// A tensor to write, or one that the file must hold.
struct StateTensor {
  std::string name;
  std::vector<std::string> other_names{};  // of the same tensor
  std::vector<std::int64_t> shape{};
  at::ScalarType type = at::kFloat;
};

class StateWriter {
 public:
  // The tensors must be added in this order; they are on the device or on the host. Throws Error if the file cannot be
  // created.
  StateWriter(const std::filesystem::path& path, at::Device device, const std::vector<StateTensor>& tensors,
              std::map<std::string, std::string> metadata = {});

  void add(const at::Tensor& tensor);  // the next one
  void finish();                       // the file appears under its name

 private:
  std::vector<StateTensor> tensors_;
  OutputFile file_;
  HostChunks chunks_;
  std::size_t num_added_ = 0;
};

class StateReader {
 public:
  // The file must hold exactly these tensors, each under one of its names; throws UsageError naming all that do not
  // fit. A batch norm's num_batches_tracked may be missing. `what` names them in messages, with a verb.
  StateReader(const std::filesystem::path& path, const std::vector<StateTensor>& tensors,
              const std::string& what = "weights do");

  // By a tensor's first name. Needed only for tensors that may be missing.
  bool has(const std::string& name) const { return entry_of_.contains(name); }
  // A view of the file, in the file's type.
  at::Tensor tensor(const std::string& name) const;
  // A number from the metadata; none if it is not there. Throws UsageError if it is something else.
  std::optional<double> number(const std::string& key) const;

 private:
  std::filesystem::path path_;
  Weights weights_;
  std::unordered_map<std::string, const WeightEntry*> entry_of_;
};

}  // namespace tessera
