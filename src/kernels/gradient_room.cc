#include "kernels/gradient_room.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/error.h"

namespace tessera::kernels {
namespace {

struct Place {
  GradientCollector* collector = nullptr;  // null: none
  std::size_t slot = 0;
};

std::mutex places_mutex;
std::unordered_map<const c10::TensorImpl*, Place>& places() {
  static std::unordered_map<const c10::TensorImpl*, Place> all;
  return all;
}

Place place_of(const at::Tensor& parameter) {
  const std::lock_guard lock(places_mutex);
  const auto found = places().find(parameter.unsafeGetTensorImpl());
  return found == places().end() ? Place() : found->second;
}

}  // namespace

void collect_gradient(const at::Tensor& parameter, GradientCollector& collector, std::size_t slot) {
  const std::lock_guard lock(places_mutex);
  places()[parameter.unsafeGetTensorImpl()] = {&collector, slot};
}

void stop_collecting(const at::Tensor& parameter) {
  const std::lock_guard lock(places_mutex);
  places().erase(parameter.unsafeGetTensorImpl());
}

bool is_collected(const at::Tensor& parameter) {
  return place_of(parameter).collector != nullptr;
}

bool gives_gradients(const at::Tensor& input, std::span<const at::Tensor> parameters) {
  return input.requires_grad() && std::ranges::all_of(parameters, [](const at::Tensor& parameter) {
           return !parameter.requires_grad() || is_collected(parameter);
         });
}

at::Tensor gradient_room(const at::Tensor& parameter) {
  const Place place = place_of(parameter);
  return place.collector == nullptr ? at::Tensor() : place.collector->room(place.slot);
}

void give_gradients(std::span<const at::Tensor> parameters, std::span<const at::Tensor> gradients) {
  // Nearly always one collector, which should get all at once.
  std::vector<std::pair<GradientCollector*, std::vector<GivenGradient>>> given;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const Place place = place_of(parameters[i]);
    if (place.collector == nullptr)
      throw Error("nobody collects this gradient any more: keep the engine until backward");
    if (given.empty() || given.back().first != place.collector) given.emplace_back(place.collector, 0);
    given.back().second.push_back({place.slot, gradients[i]});
  }
  for (const auto& [collector, of_collector] : given) collector->take(of_collector);
}

}  // namespace tessera::kernels
