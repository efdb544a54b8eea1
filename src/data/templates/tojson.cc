// The filter tojson, as Python's json.dumps writes: every character as it is unless ensure_ascii asks otherwise.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "data/templates/functions.h"
#include "data/templates/python.h"
#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

struct JsonStyle {
  bool is_ascii = false, sorts_keys = false;
  std::optional<std::string> indent = {};  // of one level
  std::string between_items = ", ", behind_keys = ": ";
};

class JsonWriter {
 public:
  JsonWriter(Rendering& rendering, const JsonStyle& style) : rendering_(rendering), style_(style) {}

  std::string run(const Value& value) {
    write(value);
    return std::move(text_);
  }

 private:
  void write(const Value& value) {
    rendering_.spend(1);
    if (value.is_none()) {
      text_ += "null";
    } else if (value.is_bool()) {
      text_ += value.is_true() ? "true" : "false";
    } else if (value.is_integer()) {
      text_ += std::to_string(*value.integer());
    } else if (value.is_real()) {
      text_ += number_text(*value.number());
    } else if (const std::string* text = value.text()) {
      write_text(*text);
    } else if (const List* list = value.list()) {
      write_items('[', ']', list->items.size(), [&](std::size_t i) { write(list->items[i]); });
    } else if (const Dict* dict = value.dict()) {
      write_dict(*dict);
    } else {
      rendering_.refuse(fmt::format("Object of type {} is not JSON serializable", value.type_name()));
    }
  }

  static std::string number_text(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return real_text(value);
  }

  void write_text(const std::string& value) {
    rendering_.spend_repeated(value.size(), 2);
    text_ += '"';
    for_each_character(value, [&](char32_t c, std::size_t begin, std::size_t end) {
      static constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b", kNames = "\"\\nrtfb";
      const std::size_t escape = c < 0x80 ? kEscaped.find(static_cast<char>(c)) : std::string_view::npos;
      if (escape != std::string_view::npos) {
        text_ += '\\';
        text_ += kNames[escape];
      } else if (c >= 0x10000 && style_.is_ascii) {
        text_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + (c & 0x3FF));
      } else if (c < 0x20 || (c > 0x7E && style_.is_ascii)) {
        text_ += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
      } else {
        text_.append(value, begin, end - begin);
      }
    });
    text_ += '"';
  }

  void new_line() {
    if (!style_.indent) return;
    rendering_.spend_repeated(style_.indent->size(), depth_);
    text_ += '\n';
    for (std::size_t i = 0; i < depth_; ++i) text_ += *style_.indent;
  }

  void write_items(char open, char close, std::size_t count, const auto& write_one) {
    text_ += open;
    ++depth_;
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) text_ += style_.between_items;
      new_line();
      write_one(i);
    }
    --depth_;
    if (count > 0) new_line();
    text_ += close;
  }

  void write_dict(const Dict& dict) {
    rendering_.spend(dict.entries.size());
    Entries entries = dict.entries;
    if (style_.sorts_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [&](const auto& a, const auto& b) { return order_of(rendering_, a.first, b.first) < 0; });
    }
    write_items('{', '}', entries.size(), [&](std::size_t i) {
      write_text(str_of(rendering_, entries[i].first));
      text_ += style_.behind_keys;
      write(entries[i].second);
    });
  }

  Rendering& rendering_;
  const JsonStyle& style_;
  std::string text_;
  std::size_t depth_ = 0;
};

}  // namespace

Value tojson(const Call& call) {
  JsonStyle style;
  style.is_ascii = call.boolean(0, false);
  style.sorts_keys = call.boolean(3, false);
  if (!call.value_or(1, Value()).is_none()) {
    const auto width = static_cast<std::size_t>(std::max<std::int64_t>(call.integer(1, 0), 0));
    call.rendering.spend_repeated(1, width);
    style.indent = std::string(width, ' ');
    style.between_items = ",";
  }
  if (const Value separators = call.value_or(2, Value()); !separators.is_none()) {
    const Values both = items_of(call.rendering, separators);
    if (both.size() != 2 || both[0].text() == nullptr || both[1].text() == nullptr) {
      call.refuse("expects two texts as separators");
    }
    style.between_items = *both[0].text();
    style.behind_keys = *both[1].text();
  }
  call.rendering.spend_text(style.between_items.size() + style.behind_keys.size());
  return call.rendering.text(JsonWriter(call.rendering, style).run(call.self));
}

}  // namespace tessera::internal::jinja
