// What `loop` tells about the loop around it, which hands out its items.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "data/templates/object.h"

namespace tessera::internal::jinja {

// A filter looks at an item when it is asked for, so that it sees what the body has set; loop.last, nextitem and length
// ask ahead.
class Loop : public Object {
 public:
  using Keeps = std::function<bool(const Value&)>;  // null: all items

  Loop(Values items, Keeps keeps) : items_(std::move(items)), keeps_(std::move(keeps)) {}
  std::string_view type_name() const override { return "LoopContext"; }
  std::optional<Value> attribute(Rendering& rendering, std::string_view name) override;

  bool advance(Rendering& rendering);
  const Value& current() const { return *current_; }

 private:
  void fetch(Rendering& rendering);  // the item after the current one
  std::size_t length(Rendering& rendering);

  Values items_;
  Keeps keeps_;
  std::size_t next_ = 0, index_ = 0;
  std::optional<Value> before_, current_, after_;
  bool is_filtering_ = false;
};

}  // namespace tessera::internal::jinja
