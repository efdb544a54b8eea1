#include "model/parameters.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "kernels/device_fill.h"
#include "kernels/parallel.h"
#include "kernels/row_sums.h"
#include "model/language_model.h"

namespace tessera {
namespace {

std::uint64_t seed_of(const std::string& name, std::uint64_t seed) {
  std::uint64_t state = mix_seed(seed, name.size());
  for (const char letter : name) state = mix_seed(state, static_cast<unsigned char>(letter));
  return state;
}

// Drawn in parts, each from a generator of its own, so that every core draws: one core draws a hundred million numbers
// a second, and BLOOM-3B would take it half a minute.
constexpr std::int64_t kPartNumel = std::int64_t{1} << 21;

void draw(const at::Tensor& values, double deviation, std::uint64_t seed) {
  const at::Tensor flat = values.view({-1});
  const auto draw_part = [&](std::int64_t begin, const at::Tensor& to) {
    const auto part = static_cast<std::uint64_t>(begin / kPartNumel);
    to.normal_(0, deviation, at::detail::createCPUGenerator(part == 0 ? seed : mix_seed(seed, part)));
  };
  if (flat.is_cuda()) return kernels::fill_device(flat, at::kFloat, kPartNumel, draw_part);
  kernels::parallel_parts(0, flat.numel(), kPartNumel, [&](std::int64_t begin, std::int64_t end) {
    const at::NoGradGuard no_grad;  // of this thread
    draw_part(begin, flat.narrow(0, begin, end - begin));
  });
}

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

class WithoutGradientOf : public torch::autograd::Function<WithoutGradientOf> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows, const at::Tensor& ids, std::int64_t id) {
    context->save_for_backward({ids});
    context->saved_data["id"] = id;
    return rows.view_as(rows);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const at::Tensor is_padding = context->get_saved_variables()[0] == context->saved_data["id"].toInt();
    return {grads[0].masked_fill(is_padding.unsqueeze(1), 0), {}, {}};
  }
};

}  // namespace

void initialise_parameter(at::Tensor& parameter, const std::string& name, const InitialValues& values,
                          std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  if (name.ends_with("bias")) {
    parameter.zero_();
    return;
  }
  if (parameter.dim() == 1) {  // the weight of a norm
    parameter.fill_(values.norm_weight);
    return;
  }
  const bool is_scaled =
      std::ranges::any_of(values.scaled, [&](const std::string& ending) { return name.ends_with(ending); });
  const double deviation = values.deviation * (is_scaled ? values.scale : 1);
  if (parameter.is_contiguous() &&
      (parameter.is_cuda() || (parameter.is_cpu() && parameter.scalar_type() == at::kFloat))) {
    draw(parameter, deviation, seed_of(name, seed));
  } else {
    const at::Tensor drawn = at::empty(parameter.sizes(), at::kFloat);
    draw(drawn, deviation, seed_of(name, seed));
    parameter.copy_(drawn);
  }
  if (values.padding_id >= 0 && name == values.embedding) parameter.select(0, values.padding_id).zero_();
}

void initialise(LanguageModel& model, std::uint64_t seed) {
  const InitialValues values = model.initial_values();
  for (auto& item : model.named_parameters()) initialise_parameter(item.value(), item.key(), values, seed);
}

TiedTable tie(const at::Tensor& table) {
  const variable_list both = Tie::apply(table);
  return {both[0], both[1]};
}

at::Tensor look_up(const at::Tensor& table, const at::Tensor& ids, bool is_tied, std::int64_t padding_id) {
  const at::Tensor rows =
      at::embedding(table, ids, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false, /*sparse=*/is_tied);
  // Not embedding's own padding_idx: of a sparse gradient it removes rows, for which a GPU's host waits.
  return padding_id < 0 ? rows : WithoutGradientOf::apply(rows, ids, padding_id);
}

}  // namespace tessera
