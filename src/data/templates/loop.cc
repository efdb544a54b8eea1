#include "data/templates/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "data/templates/rendering.h"

namespace tessera::internal::jinja {

void Loop::fetch(Rendering& rendering) {
  // A filter may run any part of the template, but must not move the loop that waits for it.
  if (is_filtering_) rendering.refuse("the filter of a loop cannot ask for the loop itself");
  while (!after_ && next_ < items_.size()) {
    const Value item = items_[next_++];
    is_filtering_ = true;
    if (keeps_ == nullptr || keeps_(item)) after_ = item;
    is_filtering_ = false;
  }
}

bool Loop::advance(Rendering& rendering) {
  fetch(rendering);
  if (!after_) return false;
  ++index_;
  before_ = std::exchange(current_, std::exchange(after_, std::nullopt));
  return true;
}

std::size_t Loop::length(Rendering& rendering) {
  if (keeps_ == nullptr) return items_.size();
  if (is_filtering_) rendering.refuse("the filter of a loop cannot ask for the loop itself");
  Values left;
  for (fetch(rendering); after_; fetch(rendering)) left.push_back(*std::exchange(after_, std::nullopt));
  items_ = std::move(left);
  next_ = 0;
  // What is left of the items counts as all of them from here on.
  keeps_ = [](const Value&) { return true; };
  return index_ + items_.size();
}

std::optional<Value> Loop::attribute(Rendering& rendering, std::string_view name) {
  static constexpr std::array<std::string_view, 4> kUnsupported = {"changed", "cycle", "depth", "depth0"};
  if (std::ranges::find(kUnsupported, name) != kUnsupported.end()) {
    rendering.refuse(fmt::format("loop.{} is not supported", name));
  }
  if (name == "index") return Value::count(index_);
  if (name == "index0") return Value(static_cast<std::int64_t>(index_) - 1);
  if (name == "first") return Value(index_ == 1);
  if (name == "previtem") return before_ ? *before_ : Value::undefined("there is no previous item");
  if (name == "length") return Value::count(length(rendering));
  if (name == "revindex") return Value::count(length(rendering) - index_ + 1);
  if (name == "revindex0") return Value::count(length(rendering) - index_);
  if (name != "last" && name != "nextitem") return std::nullopt;
  fetch(rendering);
  if (name == "last") return Value(!after_);
  return after_ ? *after_ : Value::undefined("there is no next item");
}

}  // namespace tessera::internal::jinja
