#include "experiment/import/shell_arithmetic.h"

#include "core/text.h"

namespace tessera {
namespace {

// Numbers of job scripts are small; beyond this a script is not counting nodes.
constexpr long long kMostCounted = 1'000'000'000'000;
constexpr int kMostBrackets = 64;

class ArithmeticReader {
 public:
  using ValueOf = std::function<std::optional<long long>(const std::string&)>;
  using Number = std::optional<long long>;

  ArithmeticReader(std::string_view text, const ValueOf& value_of) : text_(text), value_of_(value_of) {}

  Number read() {
    const Number value = sum();
    skip();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  static Number bounded(long long value) {
    return value > kMostCounted || value < -kMostCounted ? std::nullopt : Number(value);
  }

  Number sum() {
    Number left = product();
    while (left) {
      const bool adds = take('+');
      if (!adds && !take('-')) return left;
      const Number right = product();
      if (!right) return right;
      left = bounded(adds ? *left + *right : *left - *right);
    }
    return left;
  }

  Number product() {
    Number left = factor();
    while (left) {
      const char sign = take('*') ? '*' : take('/') ? '/' : take('%') ? '%' : '\0';
      if (sign == '\0') return left;
      const Number right = factor();
      if (!right || (sign != '*' && *right == 0)) return std::nullopt;
      if (sign == '*') {
        const double size = static_cast<double>(*left) * static_cast<double>(*right);
        if (size > kMostCounted || size < -kMostCounted) return std::nullopt;
        left = *left * *right;
      } else {
        left = sign == '/' ? *left / *right : *left % *right;
      }
    }
    return left;
  }

  Number factor() {
    if (take('(')) {
      if (++depth_ > kMostBrackets) return std::nullopt;
      const Number inner = sum();
      return take(')') ? inner : std::nullopt;
    }
    const bool is_variable = take('$');
    const bool has_brace = is_variable && take('{');
    const std::size_t begin = at_;
    const auto is_in_word = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    while (at_ < text_.size() && is_in_word(text_[at_])) ++at_;
    const std::string word(text_.substr(begin, at_ - begin));
    if (word.empty() || (has_brace && !take('}'))) return std::nullopt;
    const Number number = parse_integer(word);
    return bounded_or_none(number ? number : value_of_(word));
  }

  static Number bounded_or_none(Number value) { return value ? bounded(*value) : value; }

  std::string_view text_;
  const ValueOf& value_of_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<long long> shell_arithmetic(std::string_view text,
                                          const std::function<std::optional<long long>(const std::string&)>& value_of) {
  return ArithmeticReader(text, value_of).read();
}

}  // namespace tessera
