#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/adamw.h"
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

}  // namespace tessera::kernels
