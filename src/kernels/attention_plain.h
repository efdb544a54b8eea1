// Packed causal attention in libtorch's own operators, one sequence after the other: for tensors that no kernel of ours
// and no FlashAttention serves (float32 on a GPU). Needs the offsets on the host: it waits for the GPU.
#pragma once

#include <ATen/core/Generator.h>

#include <tuple>

#include "kernels/attention.h"

namespace tessera::kernels {

struct PlainForward {
  at::Tensor out;           // [T, H, D]
  at::Tensor logsumexp;     // [H, T] float32: of each query's scores
  at::Generator generator;  // as it was before the dropout; undefined without dropout
};

PlainForward attention_forward_plain(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                     const PackedAttention& how);
std::tuple<at::Tensor, at::Tensor, at::Tensor> attention_backward_plain(const at::Tensor& grad, const at::Tensor& q,
                                                                        const at::Tensor& k, const at::Tensor& v,
                                                                        const PackedAttention& how,
                                                                        const PlainForward& forward);

}  // namespace tessera::kernels
