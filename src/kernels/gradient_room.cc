#include "kernels/gradient_room.h"

#include <mutex>
#include <unordered_map>
#include <utility>

namespace tessera::kernels {
namespace {

struct Offers {
  std::mutex mutex;
  std::unordered_map<const c10::TensorImpl*, GradientRoom> rooms;
};

Offers& offers() {
  static Offers all;
  return all;
}

}  // namespace

void offer_gradient_room(const at::Tensor& parameter, GradientRoom room) {
  const std::lock_guard lock(offers().mutex);
  offers().rooms[parameter.unsafeGetTensorImpl()] = std::move(room);
}

void withdraw_gradient_room(const at::Tensor& parameter) {
  const std::lock_guard lock(offers().mutex);
  offers().rooms.erase(parameter.unsafeGetTensorImpl());
}

at::Tensor gradient_room(const at::Tensor& parameter) {
  GradientRoom room;
  {
    const std::lock_guard lock(offers().mutex);
    const auto found = offers().rooms.find(parameter.unsafeGetTensorImpl());
    if (found == offers().rooms.end()) return {};
    room = found->second;
  }
  return room();
}

}  // namespace tessera::kernels
