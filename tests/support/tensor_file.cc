#include "support/tensor_file.h"

#include <ATen/ops/from_blob.h>

#include <cstring>
#include <stdexcept>
#include <vector>

#include "core/file.h"

namespace tessera {

const at::Tensor& TensorFile::at(const std::string& name) const {
  const auto found = tensors.find(name);
  if (found == tensors.end()) throw std::runtime_error("the reference file has no tensor " + name);
  return found->second;
}

TensorFile read_tensor_file(const std::string& path) {
  std::string content = read_file(path);
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, content.data(), sizeof header_bytes);
  const Json header = parse_json(std::string_view(content).substr(8, header_bytes), path);
  TensorFile file;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      file.metadata = entry;
      continue;
    }
    const std::string type = entry.at("dtype").get<std::string>();
    if (type != "F32" && type != "F64" && type != "I64") throw std::runtime_error(path + ": unknown type " + type);
    const auto shape = entry.at("shape").get<std::vector<std::int64_t>>();
    const auto begin = entry.at("data_offsets").at(0).get<std::uint64_t>();
    const at::ScalarType scalar = type == "F32" ? at::kFloat : type == "F64" ? at::kDouble : at::kLong;
    file.tensors[name] = at::from_blob(content.data() + 8 + header_bytes + begin, shape, scalar).clone();
  }
  return file;
}

}  // namespace tessera
