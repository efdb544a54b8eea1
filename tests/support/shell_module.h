// A module of named tensors only: the target of loading where no model is needed.
#pragma once

#include <torch/nn/module.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>

namespace tessera {

// One tensor per name; the parts before dots become submodules, as in a model with those weights.
class ShellModule : public torch::nn::Module {
 public:
  void add(const std::string& name, const at::Tensor& tensor) {
    const std::size_t dot = name.find('.');
    if (dot == std::string::npos) {
      register_parameter(name, tensor, /*requires_grad=*/false);
      return;
    }
    const std::string head = name.substr(0, dot);
    auto& child = children_[head];
    if (!child) child = register_module(head, std::make_shared<ShellModule>());
    child->add(name.substr(dot + 1), tensor);
  }

 private:
  std::map<std::string, std::shared_ptr<ShellModule>> children_;
};

}  // namespace tessera
