// Filters of texts; other values are taken as what str() makes of them.
#include <fmt/format.h>

#include "core/text.h"
#include "data/templates/arguments.h"
#include "data/templates/filters.h"
#include "data/templates/formats.h"
#include "data/templates/python_text.h"
#include "data/templates/text_parts.h"
#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

// Jinja2's own title: words begin behind -, white space, and opening brackets.
std::string title_words(std::string_view text) {
  std::string all, word;
  const auto end_word = [&] {
    if (word.empty()) return;
    const std::size_t first = utf8_length(static_cast<unsigned char>(word[0]));
    all += upper_case(word.substr(0, first)) + lower_case_of(word.substr(first));
    word.clear();
  };
  for_each_character(text, [&](char32_t c, std::size_t begin, std::size_t end) {
    if (c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c)) {
      end_word();
      all += text.substr(begin, end - begin);
    } else {
      word += text.substr(begin, end - begin);
    }
  });
  end_word();
  return all;
}

constexpr std::size_t kFilterCaseCost = 16;  // characters beyond ASCII are looked up in tables

// Markup stays markup.
template <auto change>
Value change_text(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters none(rendering, "this filter", arguments, {});
  const std::string text = str_of(rendering, value);
  rendering.spend_repeated(text.size(), kFilterCaseCost);
  return rendering.text_like(value, change(text));
}

Value to_text(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters none(rendering, "string", arguments, {});
  return value.text() != nullptr ? value : rendering.text(str_of(rendering, value));
}

Value trim_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "trim", arguments, {"chars"});
  const std::string text = str_of(rendering, value);
  if (!given.has(0) || given.at(0).is_none())
    return rendering.text_like(value, std::string(strip_left(strip_right(text))));
  const std::string set = given.text(0, "");
  rendering.spend_repeated(set.size(), text.size());
  return rendering.text_like(value, std::string(strip_set_left(strip_set_right(text, set), set)));
}

Value replace_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "replace", arguments, {"old", "new", "count"}, 2);
  return rendering.text(replaced(rendering, str_of(rendering, value), str_of(rendering, given.at(0)),
                                 str_of(rendering, given.at(1)), given.integer(2, -1)));
}

Value indent_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "indent", arguments, {"width", "first", "blank"});
  rendering.check_defined(value);
  if (value.text() == nullptr) rendering.refuse("indent expects a text");
  std::string margin;
  if (given.has(0) && given.at(0).text() != nullptr) {
    margin = given.text(0, "");
  } else {
    const std::int64_t width = std::max<std::int64_t>(given.integer(0, 4), 0);
    rendering.spend_repeated(1, static_cast<std::size_t>(width));
    margin.assign(static_cast<std::size_t>(width), ' ');
  }
  const std::string text = *value.text() + "\n";
  const std::vector<std::string_view> lines = lines_of(text);
  rendering.spend_repeated(margin.size(), lines.size());
  std::string all = given.boolean(1, false) ? margin : "";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) all += "\n" + (given.boolean(2, false) || !lines[i].empty() ? margin : "");
    all += lines[i];
  }
  return rendering.text(std::move(all));
}

Value truncate_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "truncate", arguments, {"length", "killwords", "end", "leeway"});
  const std::string text = str_of(rendering, value), end = given.text(2, "...");
  const std::int64_t length = given.integer(0, 255), leeway = given.integer(3, 5);
  const auto end_length = static_cast<std::int64_t>(num_characters(end));
  if (length < end_length) rendering.refuse(fmt::format("expected length >= {}, found {}", end_length, length));
  if (leeway < 0) rendering.refuse(fmt::format("expected leeway >= 0, found {}", leeway));
  if (static_cast<std::int64_t>(num_characters(text)) - leeway <= length) return rendering.text(text);
  std::string kept = text.substr(0, byte_of_character(text, static_cast<std::size_t>(length - end_length)));
  if (!given.boolean(1, false)) kept.resize(std::min(kept.rfind(' '), kept.size()));
  return rendering.text(kept + end);
}

Value center_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "center", arguments, {"width"});
  return rendering.text(padded_text(rendering, str_of(rendering, value), given.integer(0, 80), " ", false, true));
}

Value count_words(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters none(rendering, "wordcount", arguments, {});
  std::int64_t count = 0;
  bool is_inside = false;
  for_each_character(str_of(rendering, value), [&](char32_t c, std::size_t, std::size_t) {
    count += is_word(c) && !is_inside ? 1 : 0;
    is_inside = is_word(c);
  });
  return Value(count);
}

Value format_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    rendering.refuse("format takes either positional or named values");
  }
  std::vector<std::pair<Value, Value>> named;
  for (const auto& [name, each] : arguments.named) named.emplace_back(rendering.text(name), each);
  const Value values = named.empty() ? rendering.tuple(arguments.positional) : rendering.dict(std::move(named));
  return rendering.text(format_percent(rendering, str_of(rendering, value), values));
}

Value escape_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters none(rendering, "escape", arguments, {});
  return value.is_markup() ? value : Value::markup(escape_html(rendering, str_of(rendering, value)));
}

Value safe_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters none(rendering, "safe", arguments, {});
  return Value::markup(str_of(rendering, value));
}

// Without comments and tags, white space runs as one blank.
Value strip_tags(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters none(rendering, "striptags", arguments, {});
  std::string text = str_of(rendering, value);
  const auto remove_all = [&](std::string_view begin, std::string_view end) {
    std::string kept;
    std::size_t at = 0;
    while (true) {
      const std::size_t first = text.find(begin, at);
      const std::size_t last = first == std::string::npos ? first : text.find(end, first);
      if (last == std::string::npos) break;
      kept.append(text, at, first - at);
      at = last + end.size();
    }
    text = kept + text.substr(at);
  };
  remove_all("<!--", "-->");
  remove_all("<", ">");
  std::string plain;
  bool is_pending = false;
  for_each_character(text, [&](char32_t c, std::size_t begin, std::size_t end) {
    if (!is_space(c) && is_pending && !plain.empty()) plain += ' ';
    is_pending = is_space(c);
    if (!is_space(c)) plain.append(text, begin, end - begin);
  });
  for (const auto& [entity, character] :
       {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&#34;", "\""}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}}) {
    plain = replaced(rendering, plain, entity, character, -1);
  }
  return rendering.text(std::move(plain));
}

std::string quoted_for_urls(Rendering& rendering, const Value& value, bool is_query) {
  const std::string text = str_of(rendering, value);
  rendering.spend_repeated(text.size(), 3);
  std::string quoted;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          std::string_view("_.-~").find(c) != std::string_view::npos || (c == '/' && !is_query);
    if (c == ' ' && is_query) {
      quoted += '+';
    } else {
      quoted += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return quoted;
}

Value urlencode(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters none(rendering, "urlencode", arguments, {});
  if (value.text() != nullptr || !find_items(rendering, value)) {
    return rendering.text(quoted_for_urls(rendering, value, false));
  }
  std::string all;
  const auto add = [&](const Value& key, const Value& each) {
    if (!all.empty()) all += "&";
    all += quoted_for_urls(rendering, key, true) + "=" + quoted_for_urls(rendering, each, true);
  };
  if (const Dict* dict = value.dict()) {
    for (const auto& [key, each] : dict->entries) add(key, each);
    return rendering.text(std::move(all));
  }
  for (const Value& pair : items_of(rendering, value)) {
    const Values parts = items_of(rendering, pair);
    if (parts.size() != 2) rendering.refuse("urlencode expects pairs");
    add(parts[0], parts[1]);
  }
  return rendering.text(std::move(all));
}

}  // namespace

const FilterTable& text_filters() {
  static const FilterTable table = {
      {"upper", change_text<upper_case>},
      {"lower", change_text<lower_case_of>},
      {"capitalize", change_text<capitalized>},
      {"title", change_text<title_words>},
      {"string", to_text},
      {"safe", safe_filter},
      {"trim", trim_filter},
      {"replace", replace_filter},
      {"indent", indent_filter},
      {"truncate", truncate_filter},
      {"center", center_filter},
      {"wordcount", count_words},
      {"format", format_filter},
      {"escape", escape_filter},
      {"e", escape_filter},
      {"striptags", strip_tags},
      {"urlencode", urlencode},
  };
  return table;
}

}  // namespace tessera::internal::jinja
