#include "config/setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/quantity.h"
#include "core/text.h"

namespace tessera {

namespace {

std::string format_number(double value) {
  constexpr double kExactIntegers = 9007199254740992.0;  // 2^53
  if (std::trunc(value) == value && std::abs(value) <= kExactIntegers) {
    return fmt::format("{}", static_cast<std::int64_t>(value));
  }
  return fmt::format("{}", value);  // the shortest text that reads back as the same value
}

// The value that a member starts with if nothing sets it.
Setting::Value zero(Setting::Kind kind) {
  switch (kind) {
    case Setting::Kind::kBool:
      return false;
    case Setting::Kind::kInteger:
    case Setting::Kind::kBytes:
      return std::int64_t{0};
    case Setting::Kind::kReal:
      return 0.0;
    case Setting::Kind::kDuration:
      return std::chrono::milliseconds(0);
    case Setting::Kind::kText:
      break;
  }
  return std::string();
}

[[noreturn]] void refuse(const std::string& allowed) {
  throw UsageError("expected " + allowed);
}

// The parsers of sizes and durations put the text into the message: ours must not show a secret.
template <typename Parse>
auto parse_quantity(Parse parse, const std::string& text, const std::string& allowed) {
  try {
    return parse(text);
  } catch (const UsageError&) {
    refuse(allowed);
  }
}

}  // namespace

std::optional<bool> parse_bool(const std::string& text) {
  const std::string word = lower_case(text);
  for (const char* yes : {"true", "t", "yes", "y", "on", "1"}) {
    if (word == yes) return true;
  }
  for (const char* no : {"false", "f", "no", "n", "off", "0"}) {
    if (word == no) return false;
  }
  return std::nullopt;
}

Setting::Setting(Kind kind, std::string name, Store store, std::int64_t lowest, std::int64_t highest)
    : kind_(kind), name_(std::move(name)), lowest_(lowest), highest_(highest), store_(std::move(store)) {
  store_(zero(kind_));
  if (kind_ == Kind::kBool) preset("false");
}

Setting& Setting::preset(const std::string& text) {
  preset_ = text;
  has_preset_ = true;
  check_preset();
  const Value value = parse(text);
  preset_ = canonical(kind_, value);
  set(value, Source::kDefault, "default");
  return *this;
}

Setting& Setting::short_name(char letter) {
  short_name_ = letter;
  return *this;
}

Setting& Setting::alias(const std::string& name) {
  aliases_.push_back(name);
  return *this;
}

Setting& Setting::environment(const std::string& name) {
  environment_names_.push_back(name);
  return *this;
}

Setting& Setting::range(double low, double high) {
  low_ = std::isfinite(low) ? std::optional(low) : std::nullopt;
  high_ = std::isfinite(high) ? std::optional(high) : std::nullopt;
  check_preset();
  return *this;
}

Setting& Setting::at_least(double low) {
  low_ = low;
  check_preset();
  return *this;
}

Setting& Setting::choices(std::vector<std::string> allowed) {
  choices_ = std::move(allowed);
  check_preset();
  return *this;
}

Setting& Setting::help(const std::string& text) {
  help_ = text;
  return *this;
}

Setting& Setting::group(const std::string& title) {
  group_ = title;
  return *this;
}

Setting& Setting::meaning(std::function<std::string(const std::string& text)> of) {
  meaning_ = std::move(of);
  return *this;
}

bool Setting::means_the_same(const std::string& a, const std::string& b) const {
  return parse(a) == parse(b) || (meaning_ && meaning_(a) == meaning_(b));
}

Setting& Setting::list() {
  is_list_ = true;
  return *this;
}

Setting& Setting::secret() {
  secret_ = true;
  return *this;
}

Setting& Setting::hidden() {
  hidden_ = true;
  return *this;
}

Setting::Value Setting::parse(const std::string& text) const {
  Value value;
  switch (kind_) {
    case Kind::kBool: {
      const std::optional<bool> parsed = parse_bool(text);
      if (!parsed) refuse(allowed());
      value = *parsed;
      break;
    }
    case Kind::kInteger:
      value = parse_integer_value(text);
      break;
    case Kind::kReal: {
      const std::optional<double> parsed = parse_real(text);
      if (!parsed) refuse(allowed());
      check_bounds(*parsed);
      value = *parsed;
      break;
    }
    case Kind::kBytes: {
      const std::int64_t bytes = parse_quantity(parse_bytes, text, allowed());
      check_bounds(static_cast<double>(bytes));
      value = bytes;
      break;
    }
    case Kind::kDuration: {
      const std::chrono::milliseconds duration = parse_quantity(parse_duration, text, allowed());
      check_bounds(static_cast<double>(duration.count()) / 1000.0);
      value = duration;
      break;
    }
    case Kind::kText:
      value = text;
      break;
  }
  check_choice(canonical(kind_, value));
  return value;
}

std::string Setting::canonical(Kind kind, const Value& value) {
  switch (kind) {
    case Kind::kBool:
      return std::get<bool>(value) ? "true" : "false";
    case Kind::kInteger:
      return fmt::format("{}", std::get<std::int64_t>(value));
    case Kind::kReal:
      return fmt::format("{}", std::get<double>(value));  // shortest round trip
    case Kind::kBytes:
      return format_bytes(std::get<std::int64_t>(value));
    case Kind::kDuration:
      return format_duration(std::get<std::chrono::milliseconds>(value));
    case Kind::kText:
      break;
  }
  return std::get<std::string>(value);
}

std::string Setting::allowed() const {
  if (!choices_.empty()) return "one of " + join(choices_, ", ");
  // "a whole number of at least 1", but "a size such as 4G, at least 1".
  const std::string limits = bounds();
  const std::string from = limits.starts_with("at") ? " of " : " from ";
  const auto with = [&](const std::string& what, const std::string& link) {
    return limits.empty() ? what : what + link + limits;
  };
  switch (kind_) {
    case Kind::kBool:
      return "true or false";
    case Kind::kInteger:
      return with("a whole number", from);
    case Kind::kReal:
      return with("a number", from);
    case Kind::kBytes:
      return with("a size such as 512K or 4G", ", ");
    case Kind::kDuration:
      return with("a duration such as 30s or 10m", ", ");
    case Kind::kText:
      break;
  }
  return "text";
}

std::string Setting::bounds() const {
  if (low_ && high_) return fmt::format("{} to {}", format_bound(*low_), format_bound(*high_));
  if (low_) return "at least " + format_bound(*low_);
  if (high_) return "at most " + format_bound(*high_);
  return "";
}

std::string Setting::shown_text() const {
  const bool has_value = is_set() || has_preset_;
  if (!has_value) return "(none)";
  return secret_ ? "(set)" : text_;
}

void Setting::set(const Value& value, Source source, const std::string& origin) {
  store_(value);
  text_ = canonical(kind_, value);
  source_ = source;
  origin_ = origin;
}

void Setting::check_preset() const {
  if (!has_preset_) return;
  try {
    parse(preset_);
  } catch (const UsageError& error) {
    throw Error(fmt::format("the preset of the setting {} is wrong: {}", name_, error.what()));
  }
}

Setting::Value Setting::parse_integer_value(const std::string& text) const {
  const std::optional<long long> parsed = parse_integer(text);
  if (parsed && *parsed >= lowest_ && *parsed <= highest_) {
    check_bounds(static_cast<double>(*parsed));
    return std::int64_t{*parsed};
  }
  // A whole number that does not fit the member: say what does, even if no range was declared.
  const std::size_t digits = text.starts_with('-') ? 1 : 0;
  const bool is_number = text.size() > digits && text.find_first_not_of("0123456789", digits) == std::string::npos;
  if (!is_number || (low_ && high_) || !choices_.empty()) refuse(allowed());
  const std::string low = low_ ? format_bound(*low_) : fmt::format("{}", lowest_);
  const std::string high = high_ ? format_bound(*high_) : fmt::format("{}", highest_);
  refuse(fmt::format("a whole number from {} to {}", low, high));
}

void Setting::check_bounds(double value) const {
  if ((low_ && value < *low_) || (high_ && value > *high_)) refuse(allowed());
}

void Setting::check_choice(const std::string& text) const {
  if (choices_.empty() || std::find(choices_.begin(), choices_.end(), text) != choices_.end()) return;
  const std::optional<std::string> meant = secret_ ? std::nullopt : nearest(text, choices_);
  refuse(allowed() + (meant ? fmt::format("; did you mean {}?", *meant) : ""));
}

std::string Setting::format_bound(double bound) const {
  if (kind_ == Kind::kBytes) return format_bytes(static_cast<std::int64_t>(bound));
  if (kind_ == Kind::kDuration) return format_duration(std::chrono::milliseconds(std::llround(bound * 1000)));
  return format_number(bound);
}

}  // namespace tessera
