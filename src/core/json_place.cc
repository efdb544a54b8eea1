#include "core/json_place.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/json.h"

namespace tessera {

namespace {

// Walks over text that is known to be well formed.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) { skip_space(); }

  std::size_t at() const { return at_; }
  std::size_t key_at() const { return key_at_; }  // of the name that enter() passed; at() if it passed none

  // Moves from a container's bracket to its value of that name or index. False: there is none, and at() is meaningless.
  bool enter(const std::variant<std::string, std::size_t>& step) {
    const char open = peek();
    if (open != (step.index() == 0 ? '{' : '[')) return false;
    pass(1);
    for (std::size_t i = 0; peek() != '}' && peek() != ']' && peek() != '\0'; ++i) {
      bool is_it = open == '[' && i == std::get<std::size_t>(step);
      if (open == '{') {
        const std::size_t begin = key_at_ = at_;
        skip_value();
        is_it = Json::parse(text_.substr(begin, at_ - begin), nullptr, false) == std::get<std::string>(step);
        skip_space();
        pass(1);  // the colon
      }
      if (is_it && open == '[') key_at_ = at_;
      if (is_it) return true;
      skip_value();
      skip_space();
      if (peek() == ',') pass(1);
    }
    return false;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void pass(std::size_t count) {
    at_ = std::min(at_ + count, text_.size());
    skip_space();
  }
  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  void skip_value() {
    std::size_t depth = 0;
    do {
      const char c = peek();
      if (c == '"') {
        skip_string();
      } else if (c == '{' || c == '[') {
        ++depth;
        ++at_;
      } else if (c == '}' || c == ']') {
        --depth;
        ++at_;
      } else if (c == ',' || c == ':') {
        ++at_;
      } else {
        at_ = std::min(text_.find_first_of(" \t\r\n{}[]:,\"", at_), text_.size());
      }
      if (depth > 0) skip_space();
    } while (depth > 0 && at_ < text_.size());
  }

  void skip_string() {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    at_ = std::min(at_ + 1, text_.size());
  }

  std::string_view text_;
  std::size_t at_ = 0, key_at_ = 0;
};

struct Place {
  std::size_t value, key;
};

Place place_of(std::string_view text, const JsonPath& path) {
  Walker walker(text);
  Place innermost{walker.at(), walker.at()};
  for (const auto& step : path) {
    if (!walker.enter(step)) break;
    innermost = {walker.at(), walker.key_at()};
  }
  return innermost;
}

}  // namespace

std::string path_text(const JsonPath& path) {
  std::string text;
  for (const auto& step : path) {
    if (const auto* name = std::get_if<std::string>(&step)) {
      text += text.empty() ? *name : "." + *name;
    } else {
      text += fmt::format("[{}]", std::get<std::size_t>(step));
    }
  }
  return text.empty() ? "the file" : text;
}

std::size_t offset_of(std::string_view text, const JsonPath& path) {
  return place_of(text, path).value;
}

std::size_t key_offset_of(std::string_view text, const JsonPath& path) {
  return place_of(text, path).key;
}

}  // namespace tessera
