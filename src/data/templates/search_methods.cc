// Methods of texts that look for others in them: split, find, startswith, count.
#include <algorithm>

#include "data/templates/arguments.h"
#include "data/templates/attributes.h"
#include "data/templates/text_parts.h"
#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

Values texts_of_parts(Rendering& rendering, const std::vector<std::string_view>& parts) {
  Values texts;
  for (const std::string_view part : parts) texts.push_back(rendering.text(std::string(part)));
  return texts;
}

// By runs of white space.
std::vector<std::string_view> words_of(std::string_view text, std::size_t most, bool from_right) {
  std::vector<std::string_view> words;
  if (from_right) {
    for (text = strip_right(text); !text.empty(); text = strip_right(text)) {
      std::size_t begin = text.size();
      while (begin > 0 && !is_space(utf8_decode(text.data() + utf8_previous(text, begin)))) {
        begin = utf8_previous(text, begin);
      }
      if (words.size() == most) begin = 0;  // the rest, with the white space before it
      words.push_back(text.substr(begin));
      text = text.substr(0, begin);
    }
    std::reverse(words.begin(), words.end());
    return words;
  }
  for (text = strip_left(text); !text.empty(); text = strip_left(text)) {
    if (words.size() == most) {
      words.push_back(text);  // the rest, with the white space at its end
      break;
    }
    std::size_t end = 0;
    while (end < text.size() && !is_space(utf8_decode(text.data() + end))) {
      end += utf8_length(static_cast<unsigned char>(text[end]));
    }
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

std::vector<std::string_view> parts_of(std::string_view text, std::string_view separator, std::size_t most,
                                       bool from_right) {
  std::vector<std::string_view> parts;
  while (parts.size() < most) {
    const std::size_t at = from_right ? text.rfind(separator) : text.find(separator);
    if (at == std::string_view::npos) break;
    const std::string_view before = text.substr(0, at), after = text.substr(at + separator.size());
    parts.push_back(from_right ? after : before);
    text = from_right ? before : after;
  }
  parts.push_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

template <bool from_right>
Value split_method(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters given(rendering, "split", arguments, {"sep", "maxsplit"});
  const std::int64_t count = given.integer(1, -1);
  const std::size_t most = count < 0 ? std::string::npos : static_cast<std::size_t>(count);
  rendering.spend(self.text()->size() / 4);  // parts of one character each would take more
  if (!given.has(0) || given.at(0).is_none()) {
    return rendering.list(texts_of_parts(rendering, words_of(*self.text(), most, from_right)));
  }
  const std::string separator = given.text(0, "");
  if (separator.empty()) rendering.refuse("empty separator");
  return rendering.list(texts_of_parts(rendering, parts_of(*self.text(), separator, most, from_right)));
}

Value splitlines(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters given(rendering, "splitlines", arguments, {"keepends"});
  rendering.spend(self.text()->size() / 4);
  return rendering.list(texts_of_parts(rendering, lines_of(*self.text(), given.boolean(0, false))));
}

template <bool from_right>
Value partition(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters given(rendering, "partition", arguments, {"sep"}, 1);
  const std::string separator = given.text(0, "");
  if (separator.empty()) rendering.refuse("empty separator");
  const std::string_view text = *self.text();
  rendering.spend_text(text.size());
  const std::size_t at = from_right ? text.rfind(separator) : text.find(separator);
  if (at != std::string_view::npos) {
    return rendering.tuple(
        texts_of_parts(rendering, {text.substr(0, at), separator, text.substr(at + separator.size())}));
  }
  return rendering.tuple(texts_of_parts(rendering, from_right ? std::vector<std::string_view>{"", "", text}
                                                              : std::vector<std::string_view>{text, "", ""}));
}

// The part of a text between two character indices, as the optional arguments of these methods give them; nothing
// where the first is behind the end.
struct Section {
  std::string_view text;
  std::size_t first_character = 0;
  bool is_outside = false;
};

Section section_of(Rendering& rendering, const Value& self, const Parameters& given) {
  const std::string_view text = *self.text();
  rendering.spend_text(text.size());
  if (!given.has(1) && !given.has(2)) return {text};
  const auto length = static_cast<std::int64_t>(num_characters(text));
  std::int64_t start = given.integer(1, 0);
  if (start < 0) start = std::max<std::int64_t>(start + length, 0);
  const std::int64_t stop = cut_bound(given.integer(2, length), 0, length, length);
  if (start > length || start > stop) return {"", 0, true};
  const std::size_t begin = byte_of_character(text, static_cast<std::size_t>(start));
  const std::size_t end = byte_of_character(text, static_cast<std::size_t>(stop));
  return {text.substr(begin, end - begin), static_cast<std::size_t>(start)};
}

// The character index; nothing: not there.
std::optional<std::int64_t> place_of(Rendering& rendering, const Value& self, const Arguments& arguments,
                                     bool from_right) {
  const Parameters given(rendering, "find and index", arguments, {"sub", "start", "end"}, 1);
  const std::string part = given.text(0, "");
  const Section section = section_of(rendering, self, given);
  if (section.is_outside) return std::nullopt;
  const std::size_t at = from_right ? section.text.rfind(part) : section.text.find(part);
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<std::int64_t>(section.first_character + num_characters(section.text.substr(0, at)));
}

template <bool from_right>
Value find_place(Rendering& rendering, const Value& self, const Arguments& arguments) {
  return Value(place_of(rendering, self, arguments, from_right).value_or(-1));
}

template <bool from_right>
Value index_place(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const auto place = place_of(rendering, self, arguments, from_right);
  if (!place) rendering.refuse("substring not found");
  return Value(*place);
}

Value count_parts(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters given(rendering, "count", arguments, {"sub", "start", "end"}, 1);
  const std::string part = given.text(0, "");
  const Section section = section_of(rendering, self, given);
  if (section.is_outside) return Value(std::int64_t{0});
  if (part.empty()) return Value(static_cast<std::int64_t>(num_characters(section.text) + 1));
  std::int64_t count = 0;
  for (std::size_t at = 0; (at = section.text.find(part, at)) != std::string_view::npos; at += part.size()) ++count;
  return Value(count);
}

// One text, or a tuple of them.
template <bool is_at_begin>
Value has_affix(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const char* const name = is_at_begin ? "startswith" : "endswith";
  const Parameters given(rendering, name, arguments, {"affix", "start", "end"}, 1);
  const Section section = section_of(rendering, self, given);
  const Values affixes = given.at(0).tuple() != nullptr ? given.at(0).tuple()->items : Values{given.at(0)};
  for (const Value& affix : affixes) {
    rendering.check_defined(affix);
    if (affix.text() == nullptr) rendering.refuse(std::string(name) + " first arg must be str or a tuple of str");
    const std::string& text = *affix.text();
    if (section.is_outside) continue;
    if (is_at_begin ? section.text.starts_with(text) : section.text.ends_with(text)) return Value(true);
  }
  return Value(false);
}

}  // namespace

Method::Body find_search_method(std::string_view name) {
  static constexpr std::pair<std::string_view, Method::Body> kMethods[] = {
      {"split", split_method<false>},  {"rsplit", split_method<true>},  {"splitlines", splitlines},
      {"partition", partition<false>}, {"rpartition", partition<true>}, {"find", find_place<false>},
      {"rfind", find_place<true>},     {"index", index_place<false>},   {"rindex", index_place<true>},
      {"count", count_parts},          {"startswith", has_affix<true>}, {"endswith", has_affix<false>},
  };
  for (const auto& [known, body] : kMethods) {
    if (known == name) return body;
  }
  return nullptr;
}

}  // namespace tessera::internal::jinja
