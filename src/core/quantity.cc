#include "core/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

namespace {

struct Unit {
  std::string_view suffix;  // lower case
  std::int64_t size;        // in bytes or ms
};

constexpr std::int64_t kKi = 1024;
constexpr std::array kByteUnits = {Unit{"t", kKi* kKi* kKi* kKi}, Unit{"g", kKi* kKi* kKi}, Unit{"m", kKi* kKi},
                                   Unit{"k", kKi}, Unit{"", 1}};
constexpr std::array kTimeUnits = {Unit{"h", 3'600'000}, Unit{"m", 60'000}, Unit{"min", 60'000},
                                   Unit{"s", 1000},      Unit{"ms", 1},     Unit{"", 1000}};

const Unit* find_unit(std::span<const Unit> units, std::string_view suffix) {
  const auto found = std::ranges::find(units, suffix, &Unit::suffix);
  return found == units.end() ? nullptr : &*found;
}

// "1.5" of a unit as a whole number of bytes or ms, or nothing. Whole parts are exact up to 2^63 - 1, which a double is
// not. A fraction is rounded to the nearest byte or ms; a fraction of a single byte or ms is refused.
std::optional<std::int64_t> scale(std::string_view number, std::int64_t unit_size) {
  const std::size_t point = number.find('.');
  const std::string_view whole_digits = number.substr(0, point);
  const std::string_view fraction_digits =
      point == std::string_view::npos ? std::string_view() : number.substr(point + 1);
  if (whole_digits.empty() || (point != std::string_view::npos && fraction_digits.empty())) return std::nullopt;

  const std::optional<long long> whole = parse_integer(whole_digits);
  if (!whole) return std::nullopt;
  std::int64_t result = 0;
  if (__builtin_mul_overflow(static_cast<std::int64_t>(*whole), unit_size, &result)) return std::nullopt;
  if (fraction_digits.empty()) return result;

  const std::optional<double> fraction = parse_real("0." + std::string(fraction_digits));
  if (!fraction) return std::nullopt;
  if (*fraction > 0 && unit_size == 1) return std::nullopt;
  const std::int64_t part = std::llround(*fraction * static_cast<double>(unit_size));
  if (*fraction > 0 && part == 0) return std::nullopt;
  if (__builtin_add_overflow(result, part, &result)) return std::nullopt;
  return result;
}

// The leading digits and points; the rest is the suffix. A sign is not part of it: quantities are never negative.
std::string_view leading_number(std::string_view text) {
  return text.substr(0, std::min(text.find_first_not_of("0123456789."), text.size()));
}

}  // namespace

std::int64_t parse_bytes(std::string_view text) {
  const std::string_view number = leading_number(text);
  std::string suffix = lower_case(text.substr(number.size()));
  if (suffix.size() == 3 && suffix.ends_with("ib")) {
    suffix.resize(1);
  } else if (suffix.ends_with('b')) {
    suffix.pop_back();
  }
  const Unit* unit = find_unit(kByteUnits, suffix);
  const std::optional<std::int64_t> bytes = unit ? scale(number, unit->size) : std::nullopt;
  if (!bytes) {
    throw UsageError(fmt::format(
        "'{}' is not a size: expected bytes, or a number with K, M, G or T (powers of 1024), such as 512K or 1.5G",
        text));
  }
  return *bytes;
}

std::chrono::milliseconds parse_duration(std::string_view text) {
  const std::string_view number = leading_number(text);
  const Unit* unit = find_unit(kTimeUnits, lower_case(text.substr(number.size())));
  const std::optional<std::int64_t> ms = unit ? scale(number, unit->size) : std::nullopt;
  if (!ms) {
    throw UsageError(fmt::format(
        "'{}' is not a duration: expected seconds, or a number with ms, s, m or h, such as 30s or 1.5h", text));
  }
  return std::chrono::milliseconds(*ms);
}

std::string format_bytes(std::int64_t bytes) {
  for (const Unit& unit : kByteUnits) {
    if (bytes != 0 && bytes % unit.size == 0 && unit.size > 1) {
      return fmt::format("{}{}", bytes / unit.size, static_cast<char>(unit.suffix[0] - 'a' + 'A'));
    }
  }
  return fmt::format("{}", bytes);
}

std::string format_duration(std::chrono::milliseconds duration) {
  const std::int64_t ms = duration.count();
  if (ms == 0) return "0s";
  for (const Unit& unit : kTimeUnits) {
    if (ms % unit.size == 0) return fmt::format("{}{}", ms / unit.size, unit.suffix);
  }
  return fmt::format("{}ms", ms);
}

std::string human_bytes(std::int64_t bytes) {
  constexpr std::array kNames = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double amount = static_cast<double>(bytes);
  std::size_t name = 0;
  // 1023.95 and not 1024: a value that would round up to "1024 KiB" reads better as "1 MiB".
  for (; std::abs(amount) >= (name == 0 ? 1024 : 1023.95) && name + 1 < kNames.size(); ++name) amount /= 1024;
  std::string digits = fmt::format("{:.{}f}", amount, std::abs(amount) < 99.95 ? 1 : 0);
  if (digits.ends_with(".0")) digits.resize(digits.size() - 2);
  return fmt::format("{} {}", digits, kNames[name]);
}

std::optional<long long> slurm_seconds(std::string_view text) {
  constexpr long long kMost = 100'000'000;
  const auto number_of = [](std::string_view digits) {
    const auto number = parse_integer(digits);
    return number && *number >= 0 && *number <= kMost ? number : std::nullopt;
  };
  const std::size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  const auto days = has_days ? number_of(text.substr(0, dash)) : std::optional<long long>(0);
  std::vector<long long> numbers;
  for (const std::string& part : split(has_days ? text.substr(dash + 1) : text, ':')) {
    const auto number = number_of(part);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  if (!days || numbers.empty() || numbers.size() > 3) return std::nullopt;
  // Without days a single number is minutes and two are minutes:seconds; behind days all begin with hours.
  if (!has_days && numbers.size() < 3) numbers.insert(numbers.begin(), 0);
  numbers.resize(3);
  return ((*days * 24 + numbers[0]) * 60 + numbers[1]) * 60 + numbers[2];
}

}  // namespace tessera
