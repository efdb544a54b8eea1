#include "data/templates/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "data/templates/unicode_text.h"
#include "data/tokenizer/characters.h"

namespace tessera::internal::jinja {
namespace {

// The largest published template has 20 KB.
constexpr std::size_t kMaxTemplateBytes = 4 * 1024 * 1024;

std::string with_plain_line_ends(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    plain += text[i] == '\r' ? '\n' : text[i];
  }
  if (plain.ends_with('\n')) plain.pop_back();
  return plain;
}

// Longer ones first.
constexpr std::array<std::string_view, 26> kSymbols = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                       "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                       ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool begins_name_or_digit(char c) {
  return begins_name(c) || is_digit(c);
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
      if (starts_with(at_, "+")) refuse(at_, "the sign + of tags is not supported");
      if (starts_with(at_, "-")) ++at_;
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
    } else if (may_strip_line) {
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
    if (!starts_with(at_, end)) return false;
    at_ += end.size();
    if (trims_line && starts_with(at_, "\n")) ++at_;
    return true;
  }

  void skip_comment(std::size_t tag) {
    while (at_ < text_.size()) {
      if (starts_with(at_, "+#}")) refuse(at_, "the sign + of tags is not supported");
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
        add(is_print ? Token::Kind::kPrintEnd : Token::Kind::kTagEnd, offset, std::string(end));
        return;
      }
      read_token(open);
    }
  }

  void read_token(std::string& open) {
    if (is_digit(text_[at_])) return read_number();
    if (text_[at_] == '\'' || text_[at_] == '"') return read_text();
    if (begins_name(text_[at_])) return take(Token::Kind::kName, end_of(begins_name_or_digit));
    for (const std::string_view symbol : kSymbols) {
      if (!starts_with(at_, symbol)) continue;
      balance(symbol[0], open);
      return take(Token::Kind::kOperator, at_ + symbol.size());
    }
    const std::string_view found = text_.substr(at_, utf8_length(static_cast<unsigned char>(text_[at_])));
    refuse(at_, fmt::format("expected a name, a value or an operator, found '{}'", printable(found)));
  }

  void take(Token::Kind kind, std::size_t end) {
    add(kind, at_, std::string(text_.substr(at_, end - at_)));
    at_ = end;
  }

  // Where the run of such characters ends that begins at `begin`.
  std::size_t end_of(bool (*belongs)(char), std::size_t begin = 0) const {
    std::size_t end = std::max(begin, at_);
    while (end < text_.size() && belongs(text_[end])) ++end;
    return end;
  }

  void read_number() {
    std::size_t end = end_of(is_digit);
    const bool is_real = end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1]);
    if (is_real) end = end_of(is_digit, end + 1);
    const bool has_zeros = !is_real && end > at_ + 1 && text_[at_] == '0';
    if (has_zeros || (end < text_.size() && begins_name(text_[end]))) {
      refuse(at_, "expected a number such as 12 or 0.5: other forms are not supported");
    }
    take(is_real ? Token::Kind::kReal : Token::Kind::kInteger, end);
  }

  void read_text() {
    const std::size_t begin = at_++;
    std::string value;
    for (; at_ < text_.size() && text_[at_] != text_[begin]; ++at_) {
      value += text_[at_] == '\\' ? unescaped(begin) : text_[at_];
    }
    if (at_ >= text_.size()) refuse(begin, fmt::format("expected {} at the end of this text", text_[begin]));
    ++at_;
    add(Token::Kind::kText, begin, std::move(value));
  }

  // The character that the escape here stands for; `at_` is then its last one.
  char unescaped(std::size_t begin) {
    static constexpr std::string_view kNames = "abfnrtv\\'\"", kMeanings = "\a\b\f\n\r\t\v\\'\"";
    static constexpr std::string_view kUnsupported = "xuUN01234567\n";
    const char c = at_ + 1 < text_.size() ? text_[at_ + 1] : ' ';
    if (kUnsupported.find(c) != std::string_view::npos) {
      refuse(begin,
             fmt::format("the escape \\{} is not supported in a text: write the character itself", printable({&c, 1})));
    }
    const std::size_t known = kNames.find(c);
    if (known == std::string_view::npos) return '\\';  // others are no escapes
    ++at_;
    return kMeanings[known];
  }

  // Within brackets, }} and %} are not the end of a tag.
  void balance(char symbol, std::string& open) {
    static constexpr std::string_view kOpening = "([{", kClosing = ")]}";
    if (const std::size_t kind = kOpening.find(symbol); kind != std::string_view::npos) {
      open += kClosing[kind];
    } else if (kClosing.find(symbol) != std::string_view::npos) {
      if (open.empty()) refuse(at_, fmt::format("'{}' was not opened", symbol));
      if (open.back() != symbol) refuse(at_, fmt::format("expected '{}', found '{}'", open.back(), symbol));
      open.pop_back();
    }
  }

  const SourceText& source_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

SourceText::SourceText(std::string_view text, std::string origin) : origin_(std::move(origin)) {
  if (text.size() > kMaxTemplateBytes) {
    refuse_file(origin_,
                fmt::format("expected a template of at most {} bytes, found {}", kMaxTemplateBytes, text.size()));
  }
  if (const std::size_t sound = num_well_formed_bytes(text); sound < text.size()) {
    refuse_file(origin_, fmt::format("expected UTF-8, found something else at byte {}", sound));
  }
  text_ = with_plain_line_ends(text);
}

std::string SourceText::place(Offset offset) const {
  const std::string_view before = std::string_view(text_).substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  const auto column = 1 + std::count_if(before.begin() + static_cast<std::ptrdiff_t>(line_begin), before.end(),
                                        [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  return fmt::format("{}:{}:{}", origin_, line, column);
}

void SourceText::refuse(Offset offset, const std::string& mistake) const {
  throw UsageError(place(offset) + ": " + mistake);
}

std::vector<Token> tokens_of(const SourceText& source) {
  return Lexer(source).run();
}

}  // namespace tessera::internal::jinja
