#include "config/setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/quantity.h"
#include "core/text.h"

namespace tessera {

namespace {

[[noreturn]] void refuse(const std::string& allowed) {
  throw UsageError("expected " + allowed);
}

// What bounds are compared with: of a duration the seconds.
double number_in(const Setting::Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  const auto* time = std::get_if<std::chrono::milliseconds>(&value);
  return time != nullptr ? static_cast<double>(time->count()) / 1000.0 : 0;
}

// The parsers of sizes and durations put the text into the message: ours must not show a secret.
template <typename Quantity>
std::optional<Quantity> parse_quantity(Quantity (*parse)(std::string_view), const std::string& text) {
  try {
    return parse(text);
  } catch (const UsageError&) {
    return std::nullopt;
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

Setting::Setting(Kind kind, std::string name, Store store, SettingTraits traits, std::string help, std::string group,
                 std::int64_t lowest, std::int64_t highest)
    : kind_(kind),
      name_(std::move(name)),
      help_(std::move(help)),
      group_(std::move(group)),
      traits_(std::move(traits)),
      lowest_(lowest),
      highest_(highest),
      store_(std::move(store)) {
  if (kind_ == Kind::kBool && !traits_.preset) traits_.preset = "false";
  if (!traits_.preset) return;
  try {
    set(parse(*traits_.preset), Source::kDefault, "default");
  } catch (const UsageError& error) {
    throw Error(fmt::format("the preset of the setting {} is wrong: {}", name_, error.what()));
  }
  traits_.preset = text_;
}

bool Setting::means_the_same(const std::string& a, const std::string& b) const {
  return parse(a) == parse(b) || (traits_.meaning && traits_.meaning(a) == traits_.meaning(b));
}

Setting::Value Setting::parse(const std::string& text) const {
  const auto known = [this](const auto& parsed) {
    if (!parsed) refuse(allowed());
    return *parsed;
  };
  Value value = text;
  if (kind_ == Kind::kBool) value = known(parse_bool(text));
  if (kind_ == Kind::kInteger) value = parse_whole_number(text);
  if (kind_ == Kind::kReal) value = known(parse_real(text));
  if (kind_ == Kind::kBytes) value = known(parse_quantity(parse_bytes, text));
  if (kind_ == Kind::kDuration) value = known(parse_quantity(parse_duration, text));
  const double number = number_in(value);
  if (number < traits_.at_least.value_or(number) || number > traits_.at_most.value_or(number)) refuse(allowed());
  const std::vector<std::string>& choices = traits_.choices;
  const std::string form = canonical(kind_, value);
  if (choices.empty() || std::ranges::find(choices, form) != choices.end()) return value;
  refuse(allowed() + (traits_.is_secret ? "" : did_you_mean(form, choices, "; did you mean {}?")));
}

std::string Setting::canonical(Kind kind, const Value& value) {
  if (kind == Kind::kBytes) return format_bytes(std::get<std::int64_t>(value));
  if (kind == Kind::kDuration) return format_duration(std::get<std::chrono::milliseconds>(value));
  if (kind == Kind::kInteger) return fmt::format("{}", std::get<std::int64_t>(value));
  if (kind == Kind::kReal) return fmt::format("{}", std::get<double>(value));  // shortest round trip
  return kind == Kind::kText ? std::get<std::string>(value) : fmt::format("{}", std::get<bool>(value));
}

const Setting::Words& Setting::words() const {
  static const Words words[] = {{"boolean", "[BOOL]", "true or false"},
                                {"integer", "N", "a whole number"},
                                {"number", "X", "a number"},
                                {"text", "TEXT", "text"},
                                {"size", "SIZE", "a size such as 512K or 4G"},
                                {"duration", "TIME", "a duration such as 30s or 10m"}};
  return words[static_cast<std::size_t>(kind_)];
}

std::string Setting::allowed() const {
  if (!traits_.choices.empty()) return "one of " + join(traits_.choices, ", ");
  const std::string limits = bounds();
  if (limits.empty()) return words().allowed;
  // "a whole number of at least 1", but "a size such as 4G, at least 1".
  const bool is_plain = kind_ == Kind::kInteger || kind_ == Kind::kReal;
  return words().allowed + std::string(!is_plain ? ", " : limits.starts_with("at") ? " of " : " from ") + limits;
}

std::string Setting::bounds() const {
  const auto& [low, high] = std::tie(traits_.at_least, traits_.at_most);
  if (low && high) return fmt::format("{} to {}", format_bound(*low), format_bound(*high));
  if (low) return "at least " + format_bound(*low);
  return high ? "at most " + format_bound(*high) : "";
}

std::string Setting::shown_text() const {
  if (!is_set() && !traits_.preset) return "(none)";
  return traits_.is_secret ? "(set)" : text_;
}

void Setting::set(const Value& value, Source source, const std::string& origin) {
  store_(value);
  text_ = canonical(kind_, value);
  source_ = source;
  origin_ = origin;
}

Setting::Value Setting::parse_whole_number(const std::string& text) const {
  const std::optional<long long> parsed = parse_integer(text);
  if (parsed && *parsed >= lowest_ && *parsed <= highest_) return std::int64_t{*parsed};
  // A whole number that does not fit the member: say what does, even if no range was declared.
  const auto& [low, high] = std::tie(traits_.at_least, traits_.at_most);
  const std::size_t digits = text.starts_with('-') ? 1 : 0;
  const bool is_number = text.size() > digits && text.find_first_not_of("0123456789", digits) == std::string::npos;
  if (!is_number || (low && high) || !traits_.choices.empty()) refuse(allowed());
  refuse(fmt::format("a whole number from {} to {}", low ? format_bound(*low) : std::to_string(lowest_),
                     high ? format_bound(*high) : std::to_string(highest_)));
}

std::string Setting::format_bound(double bound) const {
  if (kind_ == Kind::kBytes) return format_bytes(static_cast<std::int64_t>(bound));
  if (kind_ == Kind::kDuration) return format_duration(std::chrono::milliseconds(std::llround(bound * 1000)));
  constexpr double kExactIntegers = 9007199254740992.0;  // 2^53
  if (std::trunc(bound) == bound && std::abs(bound) <= kExactIntegers) {
    return fmt::format("{}", static_cast<std::int64_t>(bound));
  }
  return fmt::format("{}", bound);  // the shortest text that reads back as the same value
}

}  // namespace tessera
