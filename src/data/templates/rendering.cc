#include "data/templates/rendering.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"

namespace tessera::internal::jinja {
namespace {

std::size_t deepest_of(const Values& items) {
  std::size_t deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, item.depth());
  return deepest;
}

}  // namespace

void Rendering::refuse_chat(const std::string& message) const {
  throw ChatRefused(
      fmt::format("{}: the template refuses this conversation: {}", source_.place(at_), printable(message, 2000)));
}

void Rendering::refuse_cost() const {
  refuse(fmt::format("rendering takes more than {} steps", grouped(static_cast<long long>(options_.limits.num_steps))));
}

void Rendering::refuse_depth() const {
  refuse(fmt::format("calls are nested more than {} levels deep", options_.limits.depth));
}

void Rendering::refuse_nesting() const {
  refuse(fmt::format("statements and expressions are nested more than {} levels deep", kMostNested));
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

Value Rendering::list(Values items) {
  spend(1 + items.size());
  const std::size_t depth = depth_above(deepest_of(items));
  return Value(std::make_shared<const List>(List{std::move(items), depth}));
}

Value Rendering::tuple(Values items, bool is_group) {
  spend(1 + items.size());
  const std::size_t depth = depth_above(deepest_of(items));
  return Value(std::make_shared<const Tuple>(Tuple{std::move(items), depth, is_group}));
}

Value Rendering::dict(std::vector<std::pair<Value, Value>> entries) {
  spend(1 + 2 * entries.size());
  std::size_t deepest = 0;
  for (const auto& [key, value] : entries) deepest = std::max({deepest, key.depth(), value.depth()});
  const std::size_t depth = depth_above(deepest);
  return Value(std::make_shared<const Dict>(Dict{std::move(entries), depth}));
}

}  // namespace tessera::internal::jinja
