#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/flat_buffers.h"
#include "kernels/kernel_checks.h"
#include "kernels/optimizers/optimizer_slice.h"

namespace tessera::kernels {
namespace {

at::Tensor numbers(const nlohmann::json& list, at::Device device) {
  return at::tensor(list.get<std::vector<double>>(), at::kDouble).to(at::kFloat).to(device);
}

OptimizerNumbers numbers_of(const nlohmann::json& settings) {
  OptimizerNumbers numbers;
  if (settings.contains("betas")) numbers.beta1 = settings["betas"][0], numbers.beta2 = settings["betas"][1];
  numbers.epsilon = settings.value("eps", numbers.epsilon);
  numbers.weight_decay = settings.value("weight_decay", 0.0);
  numbers.momentum = settings.value("momentum", 0.0);
  numbers.dampening = settings.value("dampening", 0.0);
  numbers.nesterov = settings.value("nesterov", false);
  return numbers;
}

// Within a few float32 roundings, relative to each number, or to `least` if that is larger (parameters pass near zero).
void expect_equal(const at::Tensor& value, const at::Tensor& reference, double least, const std::string& what) {
  const auto a = value.to(at::kCPU, at::kDouble), b = reference.to(at::kCPU, at::kDouble);
  const double worst = ((a - b).abs() / b.abs().clamp_min(least)).max().item<double>();
  EXPECT_LE(worst, 1e-6) << what;
}

}  // namespace

void check_optimizers(const std::string& references, at::Device device) {
  std::ifstream file(references);
  ASSERT_TRUE(file) << references;
  const auto json = nlohmann::json::parse(file);
  ASSERT_GE(json["cases"].size(), 9u);
  for (const auto& one : json["cases"]) {
    const std::string kind = one["kind"];
    SCOPED_TRACE(kind + " " + one["settings"].dump());
    const auto params = numbers(one["start"], device);
    const auto first = at::zeros_like(params), second = at::zeros_like(params);
    std::int64_t step = 0;
    for (const auto& gradient : one["gradients"]) {
      const auto grads = numbers(gradient, device);
      optimizer_of(kind).update({params, grads, {first, second}}, numbers_of(one["settings"]),
                                {.learning_rate = one["settings"].at("lr"), .step = ++step});
    }
    expect_equal(params, numbers(one["end"], device), 1.0, "parameters");
    const auto& state = one["state"];
    if (state.contains("exp_avg")) expect_equal(first, numbers(state["exp_avg"], device), 1e-30, "exp_avg");
    if (state.contains("exp_avg_sq")) expect_equal(second, numbers(state["exp_avg_sq"], device), 1e-30, "exp_avg_sq");
    if (state.contains("momentum_buffer"))
      expect_equal(first, numbers(state["momentum_buffer"], device), 1e-3, "momentum");
  }
}

// In float64, by the paper's formula: c = b1 m + (1 - b1) g; p -= lr (sign(c) + decay p); m = b2 m + (1 - b2) g.
void check_lion(at::Device device) {
  const OptimizerNumbers numbers{.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1};
  const double rate = 0.01;
  const auto params = random_tensor({1'000}, at::kFloat, device, 1);
  const auto mean = at::zeros_like(params);
  at::Tensor p = params.to(at::kDouble), m = at::zeros_like(p);
  for (std::int64_t step = 1; step <= 5; ++step) {
    const auto grads = random_tensor({1'000}, at::kFloat, device, 10 + step);
    optimizer_of("lion_32bit").update({params, grads, {mean}}, numbers, {.learning_rate = rate, .step = step});
    const auto g = grads.to(at::kDouble);
    const auto c = numbers.beta1 * m + (1 - numbers.beta1) * g;
    p = p - rate * (c.sign() + numbers.weight_decay * p);
    m = numbers.beta2 * m + (1 - numbers.beta2) * g;
  }
  expect_equal(params, p, 1.0, "parameters");
  expect_equal(mean, m, 1e-2, "exp_avg");  // the size of what each step adds
}

void check_put_parts(at::Device device) {
  const std::vector<at::ScalarType> types = {at::kFloat, at::kBFloat16, at::kHalf};
  for (const at::ScalarType to : types) {
    for (const at::ScalarType from : types) {
      const at::Tensor flat = random_tensor({300'000}, to, device, 1), expected = flat.clone();
      std::vector<FlatPart> parts;
      std::int64_t offset = 3;
      for (std::int64_t i = 0; i < 70; ++i) {
        at::Tensor values = random_tensor({1 + i, i % 7 == 3 ? 700 : 5}, from, device, 2 + i);
        if (i % 5 == 4) values = values.t();  // as they come from a transposed product
        parts.push_back({values, offset, i % 3 == 0});
        const at::Tensor target = expected.narrow(0, offset, values.numel()).view(values.sizes());
        i % 3 == 0 ? target.add_(values) : target.copy_(values);
        offset += values.numel() + i % 4;
      }
      parts.push_back({at::empty({0}, flat.options().dtype(from)), 0, true});
      ASSERT_LE(offset, flat.numel());
      put_parts(flat, parts);
      EXPECT_TRUE(at::equal(flat, expected)) << from << " to " << to;
      put_parts(flat, {});
      EXPECT_TRUE(at::equal(flat, expected));
    }
  }
}

void check_masters_in_halves(at::Device device) {
  const std::int64_t n = 200'003;
  const OptimizerNumbers numbers{.weight_decay = 0.1, .momentum = 0.9};
  for (const OptimizerKind* kind : optimizers()) {
    // From 1 on, packs of four are not aligned.
    for (const auto& [first, type] :
         {std::pair(0, at::kBFloat16), {1, at::kBFloat16}, {0, at::kHalf}, {1, at::kFloat}}) {
      const std::int64_t begin = first;
      const auto part = [&](const at::Tensor& tensor) { return tensor.narrow(0, begin, n - begin); };
      OptimizerSlice whole{random_tensor({n}, at::kFloat, device, 1), random_tensor({n}, type, device, 2)};
      const auto off_ties = [&] {
        const at::Tensor bits = whole.params.view(at::kInt);
        bits.sub_(bits.bitwise_and(0x1ffff).eq(0x8000).to(at::kInt));
      };
      off_ties();
      const at::Tensor copy = whole.params.to(at::kBFloat16), remainder = remainder_of(whole.params, copy);
      OptimizerSlice halves{{}, part(whole.grads)};
      halves.copy = part(copy);
      halves.remainder = part(remainder);
      for (std::size_t i = 0; i < kind->states(numbers).size(); ++i) {
        whole.states.push_back(random_tensor({n}, at::kFloat, device, 3 + i).square());
        halves.states.push_back(part(whole.states.back().clone()));
      }
      for (int step = 1; step <= 10; ++step) {
        const UpdateNumbers update{.learning_rate = 0.01, .gradient_scale = 0.37, .step = step};
        kind->update(whole, numbers, update);
        kind->update(halves, numbers, update);
        off_ties();
      }
      const at::Tensor joined = SplitFloats{halves.copy, halves.remainder}.joined();
      EXPECT_TRUE(at::equal(joined, part(whole.params))) << kind->name << " from " << begin;
      EXPECT_TRUE(at::equal(halves.copy, part(whole.params).to(at::kBFloat16))) << kind->name;
      for (std::size_t i = 0; i < halves.states.size(); ++i) {
        EXPECT_TRUE(at::equal(halves.states[i], part(whole.states[i]))) << kind->name;
      }
    }
  }
}

}  // namespace tessera::kernels
