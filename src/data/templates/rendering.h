// One rendering: what it may still take, where in the template it is, and the values and objects that it makes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/templates/chat_template.h"
#include "data/templates/tokens.h"
#include "data/templates/value.h"

namespace tessera::internal::jinja {

class Rendering {
 public:
  Rendering(const SourceText& source, const RenderOptions& options) : source_(source), options_(options) {}
  Rendering(const Rendering&) = delete;
  Rendering& operator=(const Rendering&) = delete;

  const RenderOptions& options() const { return options_; }

  // Throws UsageError with the place of the statement or the expression that is being evaluated.
  [[noreturn]] void refuse(const std::string& mistake) const { source_.refuse(at_, mistake); }
  [[noreturn]] void refuse_chat(const std::string& message) const;  // raise_exception
  // For Python's errors where an undefined value is used: "'user' is undefined".
  void check_defined(const Value& value) const {
    if (value.is_undefined()) refuse(value.why_undefined());
  }

  // Before the work is done, or the memory taken.
  void spend(std::size_t num_steps) {
    if (num_steps > options_.limits.num_steps - num_steps_) refuse_cost();
    num_steps_ += num_steps;
  }
  void spend_text(std::size_t num_bytes) { spend(num_bytes / kBytesPerStep); }
  // A text of so many pieces of so many bytes.
  void spend_repeated(std::size_t num_bytes, std::size_t times);

  Value text(std::string text) {
    spend_text(text.size());
    return Value(std::move(text));
  }
  Value list(Values items, bool is_tuple = false);
  Value dict(Entries entries);  // keys must be unique
  Value of_json(const Json& json);
  Value generator(Values items) { return make<Sequence>(std::move(items), /*is_generator=*/true); }
  template <typename T, typename... Parts>
  Value make(Parts&&... parts) {
    spend(kStepsPerObject);
    objects_.push_back(std::make_unique<T>(std::forward<Parts>(parts)...));
    return Value(objects_.back().get());
  }

 private:
  friend class PlaceGuard;

  // All of them take 1.2 MB of the stack at most, of which a thread may have as little as 2 MB.
  static constexpr std::size_t kMostNested = 1000;
  // 10 million steps are 640 MB of text, all of which could be held at once.
  static constexpr std::size_t kBytesPerStep = 64;
  static constexpr std::size_t kStepsPerObject = 8;  // about 100 bytes that stay until the end

  [[noreturn]] void refuse_cost() const;
  std::size_t depth_above(std::size_t deepest) const;

  const SourceText& source_;
  const RenderOptions& options_;
  Offset at_ = 0;
  std::size_t num_steps_ = 0, num_nested_ = 0;
  std::vector<std::unique_ptr<Object>> objects_;
};

// Within a statement or an expression, as long as it lives: the place that messages name.
class PlaceGuard {
 public:
  PlaceGuard(Rendering& rendering, Offset offset);
  explicit PlaceGuard(Rendering& rendering) : PlaceGuard(rendering, rendering.at_) {}  // the same place, deeper
  ~PlaceGuard() {
    rendering_.at_ = outer_;
    --rendering_.num_nested_;
  }
  PlaceGuard(const PlaceGuard&) = delete;
  PlaceGuard& operator=(const PlaceGuard&) = delete;

 private:
  Rendering& rendering_;
  Offset outer_;
};

}  // namespace tessera::internal::jinja
