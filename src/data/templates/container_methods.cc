// Methods of lists, tuples and dicts, and those of texts that ask what characters they have.
#include "data/templates/arguments.h"
#include "data/templates/attributes.h"
#include "data/templates/compare.h"
#include "data/templates/python_text.h"
#include "data/templates/sequence.h"
#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

Value list_index(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters given(rendering, "index", arguments, {"value", "start", "stop"}, 1);
  const Values& items = *self.items();
  const auto size = static_cast<std::int64_t>(items.size());
  const std::int64_t start = cut_bound(given.integer(1, 0), 0, size, size);
  const std::int64_t stop = cut_bound(given.integer(2, size), 0, size, size);
  for (std::int64_t i = start; i < stop; ++i) {
    if (are_equal(rendering, items[static_cast<std::size_t>(i)], given.at(0))) return Value(i);
  }
  std::string shown;
  append_repr(rendering, shown, given.at(0));
  rendering.refuse(shown.substr(0, 200) + " is not in the list");
}

Value list_count(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters given(rendering, "count", arguments, {"value"}, 1);
  std::int64_t count = 0;
  for (const Value& item : *self.items()) count += are_equal(rendering, item, given.at(0)) ? 1 : 0;
  return Value(count);
}

Value copy(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters none(rendering, "copy", arguments, {});
  return self.dict() != nullptr ? rendering.dict(self.dict()->entries) : rendering.list(*self.items());
}

Value get(Rendering& rendering, const Value& self, const Arguments& arguments) {
  if (!arguments.named.empty()) rendering.refuse("get() takes no keyword arguments");
  const Parameters given(rendering, "get", arguments, {"key", "default"}, 1);
  check_hashable(rendering, given.at(0));
  const Value* const found = find_entry(rendering, *self.dict(), given.at(0));
  return found != nullptr ? *found : given.value_or(1, Value());
}

Value items_view(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters none(rendering, "items", arguments, {});
  Values pairs;
  for (const auto& [key, value] : self.dict()->entries) pairs.push_back(rendering.tuple({key, value}));
  return rendering.make<DictView>("dict_items", std::move(pairs));
}
Value keys_view(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters none(rendering, "keys", arguments, {});
  return rendering.make<DictView>("dict_keys", items_of(rendering, self));
}
Value values_view(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters none(rendering, "values", arguments, {});
  rendering.spend(self.dict()->entries.size());
  Values values;
  for (const auto& [key, value] : self.dict()->entries) values.push_back(value);
  return rendering.make<DictView>("dict_values", std::move(values));
}

// Whether all characters fulfil a condition; of an empty text, Python's answer differs by method.
template <auto condition, bool of_empty = false>
Value are_all(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters none(rendering, "this method", arguments, {});
  rendering.spend(self.text()->size() / 4);
  bool are = of_empty || !self.text()->empty();
  for_each_character(*self.text(), [&](char32_t c, std::size_t, std::size_t) { are = are && condition(c); });
  return Value(are);
}

bool is_ascii(char32_t c) {
  return c < 0x80;
}
bool is_letter_or_number(char32_t c) {
  return is_letter(c) || is_numeric(c);
}

// Whether all letters that have a case have the wanted one, and there is one.
template <auto is_wanted, auto is_other>
Value are_letters_all(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters none(rendering, "this method", arguments, {});
  rendering.spend(self.text()->size() / 4);
  bool has_one = false, has_other = false;
  for_each_character(*self.text(), [&](char32_t c, std::size_t, std::size_t) {
    has_one = has_one || is_wanted(c);
    has_other = has_other || is_other(c) || is_title(c);
  });
  return Value(has_one && !has_other);
}

// Each run of letters begins with an upper-case one, and all others are lower-case.
Value are_words_titles(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters none(rendering, "istitle", arguments, {});
  rendering.spend(self.text()->size() / 4);
  bool is_inside = false, has_one = false, is_wrong = false;
  for_each_character(*self.text(), [&](char32_t c, std::size_t, std::size_t) {
    const bool is_large = is_upper(c) || is_title(c), is_small = is_lower(c);
    is_wrong = is_wrong || (is_large && is_inside) || (is_small && !is_inside);
    has_one = has_one || is_large;
    is_inside = is_large || is_small;
  });
  return Value(has_one && !is_wrong);
}

Value is_identifier(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters none(rendering, "isidentifier", arguments, {});
  rendering.spend(self.text()->size() / 4);
  bool is = !self.text()->empty();
  for_each_character(*self.text(), [&](char32_t c, std::size_t begin, std::size_t) {
    is = is && is_word(c) && (begin > 0 || c == '_' || is_letter(c));
  });
  return Value(is);
}

using Entry = std::pair<std::string_view, Method::Body>;

template <std::size_t size>
Method::Body find_entry_of(const Entry (&table)[size], std::string_view name) {
  for (const auto& [known, body] : table) {
    if (known == name) return body;
  }
  return nullptr;
}

}  // namespace

Method::Body find_list_method(std::string_view name) {
  static constexpr Entry kMethods[] = {{"index", list_index}, {"count", list_count}, {"copy", copy}};
  return find_entry_of(kMethods, name);
}

Method::Body find_dict_method(std::string_view name) {
  static constexpr Entry kMethods[] = {
      {"get", get}, {"items", items_view}, {"keys", keys_view}, {"values", values_view}, {"copy", copy}};
  return find_entry_of(kMethods, name);
}

Method::Body find_text_check(std::string_view name) {
  static constexpr Entry kMethods[] = {
      {"isspace", are_all<is_space>},
      {"isalpha", are_all<is_letter>},
      {"isdigit", are_all<is_digit>},
      {"isdecimal", are_all<is_digit>},
      {"isnumeric", are_all<is_numeric>},
      {"isalnum", are_all<is_letter_or_number>},
      {"isascii", are_all<is_ascii, true>},
      {"isprintable", are_all<is_printable, true>},
      {"isupper", are_letters_all<is_upper, is_lower>},
      {"islower", are_letters_all<is_lower, is_upper>},
      {"istitle", are_words_titles},
      {"isidentifier", is_identifier},
  };
  return find_entry_of(kMethods, name);
}

}  // namespace tessera::internal::jinja
