// Small text functions that more than one layer needs.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// Bytes of a text: from `begin` up to, but not with, `end`.
struct ByteRange {
  std::size_t begin = 0, end = 0;

  bool operator==(const ByteRange&) const = default;
};

std::string_view trim(std::string_view text);
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
// A text of each: texts_of(jobs, &JobTraits::name).
std::vector<std::string> texts_of(const auto& things, const auto& text_of) {
  std::vector<std::string> texts;
  for (const auto& each : things) texts.emplace_back(std::invoke(text_of, each));
  return texts;
}
std::string lower_case(std::string_view text);

// The whole text as a number, or nothing: "12" but not "12x", "" or " 12"; nor numbers that do not fit, nan or inf.
std::optional<long long> parse_integer(std::string_view text);
std::optional<double> parse_real(std::string_view text);

// The candidate that a user most likely meant, or nothing: at most a third of the word's letters are wrong, or it is
// the only one that begins with the word (of two letters or more).
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);
// What a message adds after a word that it refuses: the nearest candidate in `form`, or "" where there is none.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates,
                         const char* form = ", did you mean '{}'?");

// At the end, unless it is there already.
void add_once(std::vector<std::string>& list, const std::string& text);

// One line of at most `max_bytes` (and a mark where it was cut), whatever the text holds: control characters as \n or
// \x1b. For text from outside that a terminal shows.
std::string printable(std::string_view text, std::size_t max_bytes = 200);

// The lines that are not empty, each behind two blanks.
std::string indented(std::string_view lines);

// "a, b, c and 7 more": names from outside in a message, at most eight of them.
std::string listed(const std::vector<std::string>& names);

std::string grouped(long long number);  // 559214592 as "559,214,592"

// {0,1,2,5} as "0-2, 5": how ranks are named in messages.
std::string format_ranges(const std::vector<int>& sorted_numbers);

}  // namespace tessera
