#include "data/templates/rendering.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"

namespace tessera::internal::jinja {

void Rendering::refuse_chat(const std::string& message) const {
  throw ChatRefused(
      fmt::format("{}: the template refuses this conversation: {}", source_.place(at_), printable(message, 2000)));
}

void Rendering::refuse_cost() const {
  refuse(fmt::format("rendering takes more than {} steps", grouped(static_cast<long long>(options_.limits.num_steps))));
}

void Rendering::spend_repeated(std::size_t num_bytes, std::size_t times) {
  std::size_t total = 0;
  if (__builtin_mul_overflow(num_bytes, times, &total)) refuse_cost();
  spend_text(total);
}

std::size_t Rendering::depth_above(std::size_t deepest) const {
  if (deepest >= options_.limits.depth) {
    refuse(fmt::format("values are nested more than {} levels deep", options_.limits.depth));
  }
  return deepest + 1;
}

Value Rendering::list(Values items, bool is_tuple) {
  spend(1 + items.size());
  std::size_t deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, item.depth());
  const std::size_t depth = depth_above(deepest);
  return Value(List{std::move(items), is_tuple, depth});
}

Value Rendering::dict(Entries entries) {
  spend(1 + 2 * entries.size());
  std::size_t deepest = 0;
  for (const auto& [key, value] : entries) deepest = std::max(deepest, value.depth());
  const std::size_t depth = depth_above(deepest);
  return Value(std::make_shared<const Dict>(Dict{std::move(entries), depth}));
}

PlaceGuard::PlaceGuard(Rendering& rendering, Offset offset) : rendering_(rendering), outer_(rendering.at_) {
  rendering.at_ = offset;
  rendering.spend(1);
  if (rendering.num_nested_ >= Rendering::kMostNested) {
    rendering.refuse(
        fmt::format("statements and expressions are nested more than {} levels deep", Rendering::kMostNested));
  }
  ++rendering.num_nested_;
}

DepthGuard::DepthGuard(Rendering& rendering) : rendering_(rendering) {
  const std::size_t most = rendering.options_.limits.depth;
  if (rendering.num_calls_ >= most) {
    rendering.refuse(fmt::format("calls are nested more than {} levels deep", most));
  }
  ++rendering.num_calls_;
}

}  // namespace tessera::internal::jinja
