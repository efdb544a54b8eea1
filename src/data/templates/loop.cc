// Loops and what `loop` tells about them.
#include <fmt/format.h>

#include <functional>

#include "data/templates/compare.h"
#include "data/templates/evaluator.h"
#include "data/templates/sequence.h"

namespace tessera::internal::jinja {
namespace {

// Hands out the items of a loop. A filter looks at an item when it is asked for, so that it sees what the body has
// set; loop.last, nextitem and length ask ahead.
class LoopState : public Object {
 public:
  using Keeps = std::function<bool(const Value&)>;
  using Recurse = std::function<Value(const Value&)>;

  LoopState(Rendering& rendering, Values items, Keeps keeps, Recurse recurse, std::size_t depth)
      : rendering_(rendering),
        items_(std::move(items)),
        keeps_(std::move(keeps)),
        recurse_(std::move(recurse)),
        depth_(depth) {}

  std::string_view type_name() const override { return "LoopContext"; }
  bool is_callable() const override { return true; }
  Value call(Rendering& rendering, Arguments arguments) override {
    if (recurse_ == nullptr) rendering.refuse("expected {% for ... recursive %} of a loop that is called");
    if (arguments.positional.size() != 1) rendering.refuse("loop(...) expects the items of the next level");
    return recurse_(arguments.positional[0]);
  }

  bool advance() {
    std::optional<Value> item = after_ ? std::exchange(after_, std::nullopt) : fetch();
    if (!item) return false;
    ++num_passed_;
    before_ = std::exchange(current_, std::move(item));
    return true;
  }
  const Value& current() const { return *current_; }

  // What the state holds is no longer needed; it may still be asked for its numbers.
  void finish() {
    if (keeps_ == nullptr) length_ = items_.size();
    items_.clear();
    next_ = 0;
    keeps_ = nullptr;
  }

  std::optional<Value> attribute(Rendering& rendering, std::string_view name) override {
    const std::size_t index = num_passed_;
    const auto number = [](std::size_t count) { return Value(static_cast<std::int64_t>(count)); };
    if (name == "index") return number(index);
    if (name == "index0") return Value(static_cast<std::int64_t>(index) - 1);
    if (name == "first") return Value(index == 1);
    if (name == "last") return Value(!peek());
    if (name == "length") return number(length(rendering).value());
    if (name == "revindex0")
      return Value(static_cast<std::int64_t>(*length(rendering)) - static_cast<std::int64_t>(index));
    if (name == "revindex")
      return Value(static_cast<std::int64_t>(*length(rendering)) - static_cast<std::int64_t>(index) + 1);
    if (name == "depth") return number(depth_ + 1);
    if (name == "depth0") return number(depth_);
    if (name == "previtem") return before_ ? *before_ : Value::undefined("there is no previous item");
    if (name == "nextitem") return peek() ? *after_ : Value::undefined("there is no next item");
    if (name == "cycle") {
      return rendering.callback([this](Rendering& inner, const Arguments& arguments) {
        if (arguments.positional.empty()) inner.refuse("loop.cycle needs items");
        return arguments.positional[(num_passed_ - 1) % arguments.positional.size()];
      });
    }
    if (name == "changed") {
      return rendering.callback([this](Rendering& inner, const Arguments& arguments) {
        const Value values = inner.tuple(arguments.positional);
        const bool is_new = !last_changed_ || !are_equal(inner, *last_changed_, values);
        last_changed_ = values;
        return Value(is_new);
      });
    }
    return std::nullopt;
  }

  std::optional<std::size_t> length(Rendering&) const override {
    if (!length_) {
      if (is_filtering_) rendering_.refuse("the filter of a loop cannot ask for the loop itself");
      length_ = keeps_ == nullptr ? items_.size() : num_passed_ + num_left();
    }
    return length_;
  }

 private:
  std::optional<Value> fetch() {
    while (next_ < items_.size()) {
      Value& item = items_[next_++];
      if (is_kept(item)) return item;
    }
    return std::nullopt;
  }
  // A filter may run any part of the template, but must not move the loop that waits for it.
  bool is_kept(const Value& item) const {
    if (keeps_ == nullptr) return true;
    if (is_filtering_) rendering_.refuse("the filter of a loop cannot ask for the loop itself");
    is_filtering_ = true;
    const bool is = keeps_(item);
    is_filtering_ = false;
    return is;
  }
  bool peek() {
    if (!after_) after_ = fetch();
    return after_.has_value();
  }
  // Of a filtered loop; those that the filter leaves are all that remain.
  std::size_t num_left() const {
    Values left;
    for (std::size_t i = next_; i < items_.size(); ++i) {
      if (is_kept(items_[i])) left.push_back(items_[i]);
    }
    items_ = std::move(left);
    next_ = 0;
    keeps_ = nullptr;
    return items_.size() + (after_ ? 1 : 0);
  }

  Rendering& rendering_;
  mutable bool is_filtering_ = false;
  mutable Values items_;
  mutable std::size_t next_ = 0;
  mutable Keeps keeps_;  // null: all items
  mutable std::optional<std::size_t> length_;
  Recurse recurse_;  // null: not a recursive loop
  std::size_t depth_, num_passed_ = 0;
  std::optional<Value> before_, current_, after_, last_changed_;
};

constexpr std::string_view kLoop = "loop";

}  // namespace

std::string Evaluator::run_loop(const For& loop, const Value& items, const ScopePtr& scope, std::size_t depth) {
  const DepthGuard guard(rendering_);
  std::string text;
  std::string* const outer = std::exchange(output_, &text);
  iterate(loop, items, scope, depth);
  output_ = outer;
  return text;
}

void Evaluator::iterate(const For& loop, const Value& items, const ScopePtr& scope, std::size_t depth) {
  LoopState::Keeps keeps;
  if (loop.filter != nullptr) {
    keeps = [this, &loop, scope](const Value& item) {
      const auto inner = std::make_shared<Scope>(scope);
      run_set(loop.target, item, inner);
      return truth(*loop.filter, inner);
    };
  }
  LoopState::Recurse recurse;
  if (loop.is_recursive) {
    recurse = [this, &loop, scope, depth](const Value& next_items) {
      return rendering_.text(run_loop(loop, next_items, scope, depth + 1));
    };
  }
  const Value object = rendering_.make<LoopState>(rendering_, items_of(rendering_, items), keeps, recurse, depth);
  auto& state = static_cast<LoopState&>(*object.object());
  bool has_run_through = false;
  auto inner = std::make_shared<Scope>(scope);
  while (state.advance()) {
    rendering_.spend(1);
    if (inner.use_count() > 1) inner = std::make_shared<Scope>(scope);  // a macro keeps the old one
    inner->clear();
    inner->set(kLoop, object);
    run_set(loop.target, state.current(), inner);
    const Flow flow = execute(loop.body, inner);
    if (flow == Flow::kBreak) break;
    has_run_through = has_run_through || flow == Flow::kNext;
  }
  state.finish();
  // As Jinja2 does it: also where every round ended in {% continue %}.
  if (!has_run_through) execute(loop.otherwise, std::make_shared<Scope>(scope));
}

}  // namespace tessera::internal::jinja
