#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/adamw.h"
#include "kernels/flat_parts.h"
#include "kernels/kernel_checks.h"
#include "kernels/sgd.h"

namespace tessera::kernels {
namespace {

at::Tensor numbers(const nlohmann::json& list, at::Device device) {
  return at::tensor(list.get<std::vector<double>>(), at::kDouble).to(at::kFloat).to(device);
}

AdamW adamw_of(const nlohmann::json& settings, bool decoupled) {
  AdamW how{
      .learning_rate = settings.at("lr"), .weight_decay = settings.value("weight_decay", 0.0), .decoupled = decoupled};
  if (settings.contains("betas")) how.beta1 = settings["betas"][0], how.beta2 = settings["betas"][1];
  how.eps = settings.value("eps", how.eps);
  return how;
}

Sgd sgd_of(const nlohmann::json& settings) {
  return {.learning_rate = settings.at("lr"),
          .momentum = settings.value("momentum", 0.0),
          .dampening = settings.value("dampening", 0.0),
          .weight_decay = settings.value("weight_decay", 0.0),
          .nesterov = settings.value("nesterov", false)};
}

// Some roundings of float32, of each number by itself; of `least` where it is smaller (parameters pass near zero).
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
      if (kind == "sgd") {
        sgd_step({params, grads, first, {}}, sgd_of(one["settings"]), ++step);
      } else {
        adamw_step({params, grads, first, second, {}}, adamw_of(one["settings"], kind == "adamw"), ++step);
      }
    }
    expect_equal(params, numbers(one["end"], device), 1.0, "parameters");
    const auto& state = one["state"];
    if (state.contains("exp_avg")) expect_equal(first, numbers(state["exp_avg"], device), 1e-30, "exp_avg");
    if (state.contains("exp_avg_sq")) expect_equal(second, numbers(state["exp_avg_sq"], device), 1e-30, "exp_avg_sq");
    if (state.contains("momentum_buffer"))
      expect_equal(first, numbers(state["momentum_buffer"], device), 1e-3, "momentum");
  }
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

}  // namespace tessera::kernels
