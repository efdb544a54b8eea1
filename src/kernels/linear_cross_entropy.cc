// The forward pass computes the gradients while it has the logits; backward only scales them by the incoming gradient.
// So the logits of a chunk are computed once and turn into their own gradient in place.
#include "kernels/linear_cross_entropy.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <memory>

#include "kernels/check.h"
#include "kernels/gradient_room.h"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kLossName = "linear_cross_entropy";

// A chunk is large enough to keep the matrix units busy and to pay for the memory traffic of the weight (read twice per
// chunk, its gradient read and written once), yet no larger than the gradient: on a GPU as large, within bounds.
constexpr std::int64_t kCpuChunkBytes = std::int64_t{64} << 20;
constexpr std::int64_t kLeastCudaChunkBytes = std::int64_t{256} << 20;
constexpr std::int64_t kMostCudaChunkBytes = std::int64_t{1} << 30;
constexpr std::int64_t kFewestRows = 16;

struct HeadGradients {
  at::Tensor hidden, weight, bias;  // undefined where not needed
};

std::int64_t rows_of_chunk(const at::Tensor& weight, const LinearCrossEntropy& how, std::int64_t num_counted) {
  if (how.chunk_rows == 0) {
    return head_chunk_rows(weight.size(0), weight.size(1), weight.element_size(), weight.is_cuda(), num_counted);
  }
  return std::max<std::int64_t>(1, std::min(how.chunk_rows, num_counted));
}

struct Needs {
  bool hidden, weight, bias;
  bool any() const { return hidden || weight || bias; }
};

// On the CPU libtorch hands half types, and float32 with a transposed factor, to oneDNN, which allocates another
// weight's worth of memory to reorder it. So float32 asks for the transposed result, which goes to BLAS. Half types
// take the weight in small parts, whose reordering stays in the cache (three times as fast for the gradient of hidden),
// with contiguous factors: other layouts fall back to a plain loop.
constexpr std::int64_t kClassesAtOnce = 1024;

bool in_parts(const at::Tensor& weight) {
  return !weight.is_cuda() && weight.scalar_type() != at::kFloat;
}

// body(first class, number of classes)
template <typename Body>
void for_each_part(const at::Tensor& chunk, std::int64_t C, const Body& body) {
  const std::int64_t V = chunk.size(1), at_once = head_part_classes(chunk.size(0), V, C);
  for (std::int64_t v = 0; v < V; v += at_once) body(v, std::min(at_once, V - v));
}

// chunk[R, V] = inputs[R, C] weight[V, C]^T + bias
void compute_logits(const at::Tensor& chunk, const at::Tensor& inputs, const at::Tensor& weight,
                    const at::Tensor& bias) {
  if (in_parts(weight)) {
    for_each_part(chunk, weight.size(1), [&](std::int64_t v, std::int64_t n) {
      chunk.narrow(1, v, n).copy_(at::mm(inputs, weight.narrow(0, v, n).t()));
    });
    if (bias.defined()) chunk.add_(bias);
    return;
  }
  auto transposed = chunk.t();
  if (bias.defined()) {
    at::addmm_out(transposed, bias.unsqueeze(1), weight, inputs.t());
  } else {
    at::mm_out(transposed, weight, inputs.t());
  }
}

// chunk[R, V] weight[V, C]
at::Tensor hidden_gradient(const at::Tensor& chunk, const at::Tensor& weight) {
  if (!in_parts(weight)) return at::mm(chunk, weight);
  auto sum = at::zeros({chunk.size(0), weight.size(1)}, weight.options().dtype(at::kFloat));
  for_each_part(chunk, weight.size(1), [&](std::int64_t v, std::int64_t n) {
    sum.add_(at::mm(chunk.narrow(1, v, n).contiguous(), weight.narrow(0, v, n)));
  });
  return sum.to(weight.scalar_type());
}

// sum[V, C] = or += chunk[R, V]^T inputs[R, C]
void add_weight_gradient(const at::Tensor& sum, const at::Tensor& chunk, const at::Tensor& inputs, bool first) {
  const auto add = [&](at::Tensor part, const at::Tensor& columns) {
    if (first) {
      at::mm_out(part, columns.t(), inputs);
    } else {
      part.addmm_(columns.t(), inputs);
    }
  };
  if (!in_parts(sum)) return add(sum, chunk);
  for_each_part(chunk, sum.size(1),
                [&](std::int64_t v, std::int64_t n) { add(sum.narrow(0, v, n), chunk.narrow(1, v, n).contiguous()); });
}

at::Tensor room_for_gradient(const at::Tensor& weight, const LinearCrossEntropy& how) {
  const at::Tensor room = gradient_room(how.parameter.defined() ? how.parameter : weight);
  return room.defined() ? room : at::empty(weight.sizes(), weight.options());
}

// The sum of the losses, and the gradients that `needs` names.
at::Tensor run_chunks(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& bias,
                      const at::Tensor& targets, const at::Tensor& counted, const LinearCrossEntropy& how,
                      const Needs& needs, HeadGradients& gradients) {
  const std::int64_t num_counted = counted.numel(), V = weight.size(0);
  auto sum = at::zeros({}, hidden.options().dtype(at::kFloat));
  if (needs.hidden) gradients.hidden = at::zeros_like(hidden);
  if (needs.weight) gradients.weight = room_for_gradient(weight, how);
  if (needs.weight && num_counted == 0) gradients.weight.zero_();
  if (needs.bias) gradients.bias = at::zeros_like(bias);
  if (num_counted == 0) return sum;
  const std::int64_t chunk_rows = rows_of_chunk(weight, how, num_counted);
  auto logits = at::empty({chunk_rows, V}, hidden.options());
  for (std::int64_t begin = 0; begin < num_counted; begin += chunk_rows) {
    const std::int64_t n = std::min(chunk_rows, num_counted - begin);
    const auto rows = counted.narrow(0, begin, n);
    const auto inputs = hidden.index_select(0, rows);
    auto chunk = logits.narrow(0, 0, n);
    compute_logits(chunk, inputs, weight, bias);
    cross_entropy_rows(chunk, targets.index_select(0, rows), how.label_smoothing, how.gradient_scale, needs.any(), sum);
    if (needs.hidden) gradients.hidden.index_copy_(0, rows, hidden_gradient(chunk, weight));
    if (needs.weight) add_weight_gradient(gradients.weight, chunk, inputs, begin == 0);
    if (needs.bias) gradients.bias.add_(chunk.sum(0));
  }
  return sum;
}

// Holds the gradients until backward; a separate object, so that backward can release them.
struct Waiting : torch::CustomClassHolder {
  HeadGradients gradients;
  double scale = 1;
  bool is_exact = false;
};

void multiply(HeadGradients& gradients, const at::Tensor& factor) {
  // Reading the factor is free on a CPU and saves a pass over V x C numbers; on a GPU it would have to wait for the
  // device.
  if (!factor.is_cuda() && factor.item<float>() == 1.0f) return;
  for (auto* gradient : {&gradients.hidden, &gradients.weight, &gradients.bias}) {
    if (gradient->defined()) gradient->mul_(factor);
  }
}

class LinearLoss : public torch::autograd::Function<LinearLoss> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& weight,
                            const std::optional<at::Tensor>& maybe_bias, const at::Tensor& targets,
                            const at::Tensor& counted, const LinearCrossEntropy& how, bool with_gradients) {
    const auto bias = maybe_bias.value_or(at::Tensor());
    const Needs needs{with_gradients && hidden.requires_grad(), with_gradients && weight.requires_grad(),
                      with_gradients && bias.defined() && bias.requires_grad()};
    auto waiting = c10::make_intrusive<Waiting>();
    waiting->scale = how.gradient_scale;
    waiting->is_exact = how.scale_is_exact;
    const auto sum = run_chunks(hidden, weight, bias, targets, counted, how, needs, waiting->gradients);
    if (needs.any()) context->saved_data["waiting"] = c10::IValue::make_capsule(std::move(waiting));
    return sum;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    if (context->saved_data.count("waiting") == 0) {
      throw Error("linear_cross_entropy keeps its gradients for one backward: run forward again before a second");
    }
    const auto capsule = context->saved_data["waiting"].toCapsule();
    context->saved_data.clear();
    auto& waiting = static_cast<Waiting&>(*capsule);
    HeadGradients gradients = std::move(waiting.gradients);
    if (!waiting.is_exact) multiply(gradients, grads[0] / waiting.scale);
    return {gradients.hidden, gradients.weight, gradients.bias, {}, {}, {}, {}};
  }
};

void check_inputs(const at::Tensor& hidden, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                  const at::Tensor& targets, const LinearCrossEntropy& how) {
  check_float_type(hidden, kLossName, "hidden");
  check(hidden.dim() == 2, kLossName, fmt::format("hidden as [T, C] but got {}", shape_text(hidden)));
  check(weight.dim() == 2 && weight.size(1) == hidden.size(1) && weight.size(0) > 0 &&
            weight.scalar_type() == hidden.scalar_type() && weight.device() == hidden.device(),
        kLossName,
        fmt::format("a weight of [V, {}] in hidden's type on its device but got {} for {}", hidden.size(1),
                    shape_text(weight), shape_text(hidden)));
  if (bias) {
    check(bias->dim() == 1 && bias->size(0) == weight.size(0) && bias->scalar_type() == hidden.scalar_type(), kLossName,
          fmt::format("a bias of [{}] in hidden's type but got {}", weight.size(0), shape_text(*bias)));
  }
  check(targets.dim() == 1 && targets.size(0) == hidden.size(0) && targets.scalar_type() == at::kLong &&
            targets.device() == hidden.device(),
        kLossName,
        fmt::format("targets as [{}] int64 on {} but got {} on {}", hidden.size(0), hidden.device().str(),
                    shape_text(targets), targets.device().str()));
  check(how.label_smoothing >= 0 && how.label_smoothing <= 1, kLossName,
        fmt::format("label_smoothing in [0, 1] but got {}", how.label_smoothing));
  check(!how.counted.defined() || (how.counted.dim() == 1 && how.counted.scalar_type() == at::kLong &&
                                   how.counted.device() == hidden.device()),
        kLossName, fmt::format("counted rows as int64 on {}", hidden.device().str()));
  check(how.chunk_rows >= 0, kLossName, fmt::format("chunk_rows of 0 (chosen) or more but got {}", how.chunk_rows));
  check(how.gradient_scale > 0, kLossName, fmt::format("gradient_scale above 0 but got {}", how.gradient_scale));
}

// The rows whose target counts, in order. Throws Error if a target is not a class.
at::Tensor counted_rows(const at::Tensor& targets, std::int64_t V, std::int64_t ignore_index) {
  const auto counts = targets != ignore_index;
  const auto wrong = counts & ((targets < 0) | (targets >= V));
  if (wrong.any().item<bool>()) {
    const auto row = wrong.nonzero()[0][0].item<std::int64_t>();
    throw Error(fmt::format("{} expects targets from 0 to {} or {} (ignored) but got {} at row {}", kLossName, V - 1,
                            ignore_index, targets[row].item<std::int64_t>(), row));
  }
  return counts.nonzero().squeeze(1);
}

}  // namespace

std::int64_t head_chunk_rows(std::int64_t vocab_size, std::int64_t hidden_size, std::int64_t element_bytes, bool on_gpu,
                             std::int64_t num_counted) {
  const std::int64_t chunk_bytes =
      on_gpu ? std::clamp(vocab_size * hidden_size * element_bytes, kLeastCudaChunkBytes, kMostCudaChunkBytes)
             : kCpuChunkBytes;
  const std::int64_t rows = std::max(kFewestRows, chunk_bytes / (vocab_size * element_bytes));
  return std::max<std::int64_t>(1, std::min(rows, num_counted));
}

std::int64_t head_part_classes(std::int64_t rows, std::int64_t vocab_size, std::int64_t hidden_size) {
  return std::clamp<std::int64_t>(rows * vocab_size / (2 * hidden_size), 1,
                                  std::min(kClassesAtOnce, (vocab_size + 3) / 4));
}

LossSum linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                             const at::Tensor& targets, const LinearCrossEntropy& how) {
  check_inputs(hidden, weight, bias, targets, how);
  const auto counted = how.counted.defined() ? how.counted : counted_rows(targets, weight.size(0), how.ignore_index);
  LossSum result;
  result.num_counted = counted.numel();
  result.sum = LinearLoss::apply(hidden, weight, bias, targets, counted, how, c10::GradMode::is_enabled());
  return result;
}

}  // namespace tessera::kernels
