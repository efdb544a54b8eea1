#include "data/arrow/json_text.h"

#include <arrow/util/utf8.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace tessera {
namespace {

constexpr std::int64_t kSecondsPerDay = 86400;

struct Split {
  std::int64_t quotient, rest;  // rest at least 0
};
Split split_down(std::int64_t number, std::int64_t by) {
  const std::int64_t rest = number % by;
  return rest < 0 ? Split{number / by - 1, rest + by} : Split{number / by, rest};
}

std::int64_t units_per_second(arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      return 1;
    case arrow::TimeUnit::MILLI:
      return 1000;
    case arrow::TimeUnit::MICRO:
      return 1000000;
    default:
      return 1000000000;
  }
}

void put_bare_date(std::int64_t days, std::string& out) {
  // 0001-01-01 and 9999-12-31: what ISO 8601 writes with four digits, and Python knows.
  if (days < -719162 || days > 2932896) throw ValueMistake("holds a date outside the years 1 to 9999");
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(days))};
  char text[48];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u", int(date.year()), unsigned(date.month()), unsigned(date.day()));
  out += text;
}

void put_bare_time(std::int64_t seconds, std::int64_t fraction, std::int64_t units, std::string& out) {
  char text[80];
  const int hour = int(seconds / 3600), minute = int(seconds / 60 % 60), second = int(seconds % 60);
  std::snprintf(text, sizeof text, "%02d:%02d:%02d", hour, minute, second);
  out += text;
  const std::int64_t nanoseconds = fraction * (1000000000 / units);
  if (nanoseconds == 0) return;
  if (nanoseconds % 1000 == 0)
    std::snprintf(text, sizeof text, ".%06d", int(nanoseconds / 1000));
  else
    std::snprintf(text, sizeof text, ".%09d", int(nanoseconds));
  out += text;
}

}  // namespace

void put_string(std::string_view text, std::string& out) {
  if (!arrow::util::ValidateUTF8(text)) throw ValueMistake("holds text that is not UTF-8");
  out += '"';
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const unsigned char letter = static_cast<unsigned char>(text[at]);
    if (letter >= 0x20 && letter != '"' && letter != '\\') continue;
    out.append(text, done, at - done);
    done = at + 1;
    switch (letter) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        char escape[8];
        std::snprintf(escape, sizeof escape, "\\u%04x", unsigned{letter});
        out += escape;
    }
  }
  out.append(text, done);
  out += '"';
}

void put_json(std::string_view text, std::string& out) {
  // Else a value could end its object and change the row that it stands in.
  if (!nlohmann::json::accept(text)) throw ValueMistake("holds a text that is not JSON, though its type says so");
  const std::size_t start = out.size();
  out += text;
  for (std::size_t at = start; at < out.size(); ++at) {  // in strings they are escaped
    if (out[at] == '\n' || out[at] == '\r') out[at] = ' ';
  }
}

void put_real(double number, std::string& out) {
  if (!std::isfinite(number))
    throw ValueMistake(std::string("holds ") + (std::isnan(number) ? "NaN" : "an infinity") +
                       ", which JSON does not have");
  char digits[40];
  const char* end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  const std::string_view text(digits, static_cast<std::size_t>(end - digits));
  out += text;
  if (text.find_first_of(".e") == text.npos) out += ".0";
}

void put_date(std::int64_t days, std::string& out) {
  out += '"';
  put_bare_date(days, out);
  out += '"';
}

void put_time(std::int64_t time, arrow::TimeUnit::type unit, std::string& out) {
  const std::int64_t units = units_per_second(unit);
  const auto [seconds, fraction] = split_down(time, units);
  if (seconds < 0 || seconds >= kSecondsPerDay) throw ValueMistake("holds a time that is not within a day");
  out += '"';
  put_bare_time(seconds, fraction, units, out);
  out += '"';
}

void put_timestamp(std::int64_t time, arrow::TimeUnit::type unit, bool has_zone, std::string& out) {
  const std::int64_t units = units_per_second(unit);
  const auto [all_seconds, fraction] = split_down(time, units);
  const auto [days, seconds] = split_down(all_seconds, kSecondsPerDay);
  out += '"';
  put_bare_date(days, out);
  out += 'T';
  put_bare_time(seconds, fraction, units, out);
  if (has_zone) out += "+00:00";
  out += '"';
}

}  // namespace tessera
