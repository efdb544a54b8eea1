#include "kernels/gradient_room.h"

#include <mutex>
#include <unordered_map>
#include <utility>

namespace tessera::kernels {
namespace {

// What is known of each parameter; from any thread.
template <typename Offer>
class Offers {
 public:
  void put(const at::Tensor& parameter, Offer offer) {
    const std::lock_guard lock(mutex_);
    offers_[parameter.unsafeGetTensorImpl()] = std::move(offer);
  }
  void remove(const at::Tensor& parameter) {
    const std::lock_guard lock(mutex_);
    offers_.erase(parameter.unsafeGetTensorImpl());
  }
  // Empty if there is none.
  Offer of(const at::Tensor& parameter) {
    const std::lock_guard lock(mutex_);
    const auto found = offers_.find(parameter.unsafeGetTensorImpl());
    return found == offers_.end() ? Offer() : found->second;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const c10::TensorImpl*, Offer> offers_;
};

Offers<GradientRoom>& rooms() {
  static Offers<GradientRoom> all;
  return all;
}
Offers<GradientTaker>& takers() {
  static Offers<GradientTaker> all;
  return all;
}

}  // namespace

void offer_gradient_room(const at::Tensor& parameter, GradientRoom room) {
  rooms().put(parameter, std::move(room));
}

void withdraw_gradient_room(const at::Tensor& parameter) {
  rooms().remove(parameter);
}

void take_gradients(const at::Tensor& parameter, GradientTaker taker) {
  takers().put(parameter, std::move(taker));
}

void stop_taking_gradients(const at::Tensor& parameter) {
  takers().remove(parameter);
}

at::Tensor gradient_room(const at::Tensor& parameter) {
  const GradientRoom room = rooms().of(parameter);
  return room ? room() : at::Tensor();
}

bool is_gradient_taken(const at::Tensor& parameter) {
  return static_cast<bool>(takers().of(parameter));
}

void give_gradient(const at::Tensor& parameter, at::Tensor gradient) {
  takers().of(parameter)(std::move(gradient));
}

}  // namespace tessera::kernels
