// Cuts a template into tokens.
#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "core/text.h"
#include "data/templates/token.h"
#include "data/templates/unicode_text.h"
#include "data/tokenizer/characters.h"

namespace tessera::internal::jinja {
namespace {

// Longer ones first.
constexpr std::array<std::string_view, 26> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                         "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                         ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

class Lexer {
 public:
  explicit Lexer(const SourceText& source) : source_(source), text_(source.text()) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) {
      const std::size_t tag = next_tag();
      if (tag == std::string_view::npos) {
        add_data(text_.substr(at_));
        at_ = text_.size();
        break;
      }
      const char kind = text_[tag + 1];
      add_data_before(tag, kind != '{');
      at_ = tag + 2;
      if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) ++at_;
      if (kind == '#') {
        skip_comment(tag);
      } else {
        read_tag(tag, kind == '{');
      }
    }
    add(Token::Kind::kEnd, text_.size());
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void refuse(std::size_t offset, const std::string& mistake) const {
    source_.refuse(static_cast<Offset>(offset), mistake);
  }
  void add(Token::Kind kind, std::size_t offset, std::string text = {}) {
    tokens_.push_back({kind, static_cast<Offset>(offset), std::move(text)});
  }
  void add_data(std::string_view data) {
    if (!data.empty()) add(Token::Kind::kData, static_cast<std::size_t>(data.data() - text_.data()), std::string(data));
  }

  bool starts_with(std::size_t at, std::string_view word) const { return text_.substr(at).starts_with(word); }

  std::size_t next_tag() const {
    for (std::size_t at = text_.find('{', at_); at != std::string_view::npos; at = text_.find('{', at + 1)) {
      if (at + 1 < text_.size() && (text_[at + 1] == '{' || text_[at + 1] == '%' || text_[at + 1] == '#')) return at;
    }
    return std::string_view::npos;
  }

  // Text up to a tag, less the white space that the tag's sign or lstrip_blocks takes.
  void add_data_before(std::size_t tag, bool may_strip_line) {
    std::string_view data = text_.substr(at_, tag - at_);
    const char sign = tag + 2 < text_.size() ? text_[tag + 2] : ' ';
    if (sign == '-') {
      data = strip_right(data);
    } else if (sign != '+' && may_strip_line) {
      const std::size_t line_begin = data.rfind('\n') + 1;  // npos + 1 is 0
      const bool begins_line = line_begin > 0 || at_ == 0 || text_[at_ - 1] == '\n';
      if (begins_line && strip_left(data.substr(line_begin)).empty()) data = data.substr(0, line_begin);
    }
    add_data(data);
  }

  void skip_space() { at_ = text_.size() - strip_left(text_.substr(at_)).size(); }

  // Whether a tag ends here; then what it takes of the white space behind it is passed, too.
  bool pass_end(std::string_view end, bool trims_line) {
    if (starts_with(at_, "-") && starts_with(at_ + 1, end)) {
      at_ += 1 + end.size();
      skip_space();
      return true;
    }
    if (trims_line && starts_with(at_, "+") && starts_with(at_ + 1, end)) {
      at_ += 1 + end.size();
      return true;
    }
    if (!starts_with(at_, end)) return false;
    at_ += end.size();
    if (trims_line && starts_with(at_, "\n")) ++at_;
    return true;
  }

  void skip_comment(std::size_t tag) {
    while (at_ < text_.size()) {
      if (pass_end("#}", true)) return;
      ++at_;
    }
    if (at_ == tag + 2) return;  // as Jinja2, which misses the end only where a character stands before it
    refuse(tag, "expected #} at the end of this comment");
  }

  void read_tag(std::size_t tag, bool is_print) {
    add(is_print ? Token::Kind::kPrintBegin : Token::Kind::kTagBegin, tag);
    const std::string_view end = is_print ? "}}" : "%}";
    std::string open;  // brackets
    skip_space();
    if (!is_print && starts_with(at_, "raw")) refuse(tag, "{% raw %} is not supported: write {{ '{{' }} instead");
    while (true) {
      skip_space();
      const std::size_t offset = at_;
      if (at_ >= text_.size()) refuse(tag, fmt::format("expected {} after this", end));
      if (open.empty() && pass_end(end, !is_print)) {
        add(is_print ? Token::Kind::kPrintEnd : Token::Kind::kTagEnd, offset);
        return;
      }
      read_token(open);
    }
  }

  void read_token(std::string& open) {
    const auto offset = static_cast<Offset>(at_);
    if (Literal number = read_number(source_, offset); number.num_bytes > 0) return take(std::move(number));
    if (Literal text = read_text(source_, offset); text.num_bytes > 0) return take(std::move(text));
    std::size_t end = at_;
    while (end < text_.size() && (begins_name(text_[end]) || (end > at_ && text_[end] >= '0' && text_[end] <= '9'))) {
      ++end;
    }
    if (end > at_) {
      add(Token::Kind::kName, at_, std::string(text_.substr(at_, end - at_)));
      at_ = end;
      return;
    }
    for (const std::string_view symbol : kOperators) {
      if (!starts_with(at_, symbol)) continue;
      balance(symbol[0], open);
      add(Token::Kind::kOperator, at_, std::string(symbol));
      at_ += symbol.size();
      return;
    }
    const std::size_t length = utf8_length(static_cast<unsigned char>(text_[at_]));
    refuse(at_,
           fmt::format("expected a name, a value or an operator, found '{}'", printable(text_.substr(at_, length))));
  }

  void take(Literal literal) {
    at_ += literal.num_bytes;
    tokens_.push_back(std::move(literal.token));
  }

  // Within brackets, }} and %} are not the end of a tag.
  void balance(char symbol, std::string& open) {
    static constexpr std::string_view kOpening = "([{", kClosing = ")]}";
    if (const std::size_t kind = kOpening.find(symbol); kind != std::string_view::npos) {
      open += kClosing[kind];
    } else if (kClosing.find(symbol) != std::string_view::npos) {
      if (open.empty()) refuse(at_, fmt::format("'{}' was not opened", symbol));
      if (open.back() != symbol) {
        refuse(at_, fmt::format("expected '{}', found '{}'", open.back(), symbol));
      }
      open.pop_back();
    }
  }

  const SourceText& source_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(const SourceText& source) {
  return Lexer(source).run();
}

}  // namespace tessera::internal::jinja
