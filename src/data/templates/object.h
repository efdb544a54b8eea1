// Values with an identity: namespaces, functions, ranges, iterators and what templates define. A rendering owns them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/templates/value.h"

namespace tessera::internal::jinja {

class Rendering;

class Object {
 public:
  virtual ~Object() = default;

  virtual std::string_view type_name() const = 0;
  virtual void append_repr(Rendering& rendering, std::string& text) const;
  // Nothing: there is no such attribute.
  virtual std::optional<Value> attribute(Rendering&, std::string_view) { return std::nullopt; }
  // Nothing: it cannot be called, iterated, measured.
  virtual bool is_callable() const { return false; }
  virtual Value call(Rendering& rendering, Arguments arguments);
  virtual std::optional<Values> items(Rendering&) { return std::nullopt; }
  virtual std::optional<std::size_t> length(Rendering&) const { return std::nullopt; }
  // The item at an index that is in bounds; nothing: it has no such items.
  virtual std::optional<Value> item(Rendering&, std::size_t) const { return std::nullopt; }
};

// namespace(count=0): {% set ns.count = ns.count + 1 %} is seen outside of loops.
class Namespace : public Object {
 public:
  std::string_view type_name() const override { return "Namespace"; }
  void append_repr(Rendering& rendering, std::string& text) const override;
  std::optional<Value> attribute(Rendering& rendering, std::string_view name) override;
  void set(Rendering& rendering, std::string_view name, Value value);

 private:
  std::vector<std::pair<std::string, Value>> members_;
};

// A function of ours: range, raise_exception.
class Function : public Object {
 public:
  using Body = Value (*)(Rendering& rendering, const Arguments& arguments);

  Function(std::string_view name, Body body) : name_(name), body_(body) {}
  std::string_view type_name() const override { return "function"; }
  bool is_callable() const override { return true; }
  Value call(Rendering& rendering, Arguments arguments) override;

 private:
  std::string_view name_;
  Body body_;
};

// A method of a value, not yet called: text.strip
class Method : public Object {
 public:
  using Body = Value (*)(Rendering& rendering, const Value& self, const Arguments& arguments);

  Method(Value self, std::string_view name, Body body) : self_(std::move(self)), name_(name), body_(body) {}
  std::string_view type_name() const override { return "builtin_function_or_method"; }
  bool is_callable() const override { return true; }
  Value call(Rendering& rendering, Arguments arguments) override;

 private:
  Value self_;
  std::string name_;
  Body body_;
};

class Range : public Object {
 public:
  Range(std::int64_t start, std::int64_t stop, std::int64_t step, std::size_t length)
      : start_(start), stop_(stop), step_(step), length_(length) {}
  std::string_view type_name() const override { return "range"; }
  void append_repr(Rendering& rendering, std::string& text) const override;
  std::optional<Values> items(Rendering& rendering) override;
  std::optional<std::size_t> length(Rendering&) const override { return length_; }
  std::optional<Value> item(Rendering& rendering, std::size_t index) const override;

 private:
  std::int64_t start_, stop_, step_;
  std::size_t length_;
};

// keys(), values() or items() of a dict.
class DictView : public Object {
 public:
  DictView(const char* type, Values items) : type_(type), items_(std::move(items)) {}
  std::string_view type_name() const override { return type_; }
  void append_repr(Rendering& rendering, std::string& text) const override;
  std::optional<Values> items(Rendering&) override { return items_; }
  std::optional<std::size_t> length(Rendering&) const override { return items_.size(); }

 private:
  const char* type_;
  Values items_;
};

// What map, select and the like give: items that can be read once, without a length.
class Iterator : public Object {
 public:
  explicit Iterator(Values items) : items_(std::move(items)) {}
  std::string_view type_name() const override { return "generator"; }
  std::optional<Values> items(Rendering& rendering) override;  // those that are left
  std::optional<Value> next();

 private:
  Values items_;
  std::size_t next_ = 0;
};

// cycler("odd", "even"): next(), current, reset().
class Cycler : public Object {
 public:
  explicit Cycler(Values items) : items_(std::move(items)) {}
  std::string_view type_name() const override { return "Cycler"; }
  std::optional<Value> attribute(Rendering& rendering, std::string_view name) override;

 private:
  Values items_;
  std::size_t at_ = 0;
};

// joiner(", "): nothing at its first call, then the separator.
class Joiner : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string_view type_name() const override { return "Joiner"; }
  bool is_callable() const override { return true; }
  Value call(Rendering& rendering, Arguments arguments) override;

 private:
  Value separator_;
  bool is_used_ = false;
};

// A method of an object of ours that needs no table of methods.
template <typename Body>
class Callback : public Object {
 public:
  explicit Callback(Body body) : body_(std::move(body)) {}
  std::string_view type_name() const override { return "method"; }
  bool is_callable() const override { return true; }
  Value call(Rendering& rendering, Arguments arguments) override { return body_(rendering, std::move(arguments)); }

 private:
  Body body_;
};

}  // namespace tessera::internal::jinja
