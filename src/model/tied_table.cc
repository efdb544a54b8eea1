#include "model/tied_table.h"

#include <ATen/ops/embedding.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/row_sums.h"

namespace tessera {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class Tie : public torch::autograd::Function<Tie> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& table) {
    context->set_materialize_grads(false);
    return {table.view_as(table), table.view_as(table)};
  }

  static variable_list backward(AutogradContext*, const variable_list& grads) {
    const at::Tensor &rows = grads[0], &head = grads[1];
    if (!head.defined()) return {rows.defined() ? rows.to_dense() : rows};
    if (rows.defined()) kernels::add_rows(head, rows);  // in place: linear_cross_entropy gives its gradient away
    return {head};
  }
};

}  // namespace

TiedTable tie(const at::Tensor& table) {
  const variable_list both = Tie::apply(table);
  return {both[0], both[1]};
}

at::Tensor look_up(const at::Tensor& table, const at::Tensor& ids, bool is_tied) {
  return at::embedding(table, ids, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false, /*sparse=*/is_tied);
}

}  // namespace tessera
