// Reference files of tests: the simple part of the safetensors format (contiguous F32, F64 and I64 tensors, text
// metadata). For our own files only; the product's reader, which trusts nothing, is in src/weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "core/json.h"

namespace tessera {

struct TensorFile {
  std::map<std::string, at::Tensor> tensors;
  Json metadata;

  const at::Tensor& at(const std::string& name) const;  // throws if there is none
  bool has(const std::string& name) const { return tensors.count(name) != 0; }
};

TensorFile read_tensor_file(const std::string& path);

}  // namespace tessera
