// Values as JSON text: strings, numbers, dates.
//
// Whatever cannot be written throws ValueMistake, whose text follows the name of a column: "holds NaN, ...".
#pragma once

#include <arrow/type.h>

#include <charconv>
#include <concepts>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tessera {

class ValueMistake : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void put_string(std::string_view text, std::string& out);

// A JSON text, as it is but in one line.
void put_json(std::string_view text, std::string& out);

void put_number(std::integral auto number, std::string& out) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}
// Shortest digits that give the same number, with a point or an exponent: it stays a real number in JSON.
void put_real(double number, std::string& out);

// ISO 8601, as Python's isoformat() writes them: "2024-05-01", "12:30:00.250000", "2024-05-01T12:30:00+00:00". Digits
// below seconds are 0, 6 or 9; with a time zone it is universal time.
void put_date(std::int64_t days, std::string& out);
void put_time(std::int64_t time, arrow::TimeUnit::type unit, std::string& out);
void put_timestamp(std::int64_t time, arrow::TimeUnit::type unit, bool has_zone, std::string& out);

}  // namespace tessera
