#include "data/tokenizer/expression.h"

#include <fmt/format.h>

#include <array>

#include "data/tokenizer/expression_class.h"
#include "data/tokenizer/utf8.h"

namespace tessera::internal {
namespace {

constexpr int kMaxDepth = 100;
constexpr int kMaxRepeats = 1000;

struct Options {
  bool ignore_case = false, dot_is_all = false;
};

// Recursive descent: alternatives of sequences of quantified atoms.
class Translator {
 public:
  Translator(const std::string& expression, const std::string& where) : reader_(expression, where) {}

  std::string run() {
    std::string result = alternatives({}, 0);
    if (!reader_.at_end()) reader_.refuse("')' without '('");
    return result;
  }

 private:
  // Up to ')' or the end.
  std::string alternatives(Options options, int depth) {
    if (depth > kMaxDepth) reader_.refuse("groups nested deeper than 100");
    // (?i) at the start of a group applies to all of it. Elsewhere it would also affect other alternatives: refused
    // below.
    while (read_leading_options(options)) {
    }
    std::string result = options.ignore_case ? "(?i)" : "(?-i)";  // for all alternatives that follow
    result += sequence(options, depth);
    while (reader_.take_if(U"|")) result += "|" + sequence(options, depth);
    return result;
  }

  std::string sequence(const Options& options, int depth) {
    std::string result;
    last_folded_ = U'\0';
    while (!reader_.at_end() && reader_.peek() != U'|' && reader_.peek() != U')') {
      if (reader_.take_if(U"(?#")) {
        while (reader_.take() != U')') {
        }
        continue;
      }
      const char32_t before = last_folded_;
      const std::string atom = this->atom(options, depth);
      const std::string quantified = quantifiers(atom);
      // A repeated or optional atom may not be next to its neighbours; be strict.
      if (quantified != atom && options.ignore_case && last_folded_ != before) last_folded_ = U'*';
      result += quantified;
    }
    return result;
  }

  std::string atom(const Options& options, int depth) {
    const char32_t c = reader_.take();
    switch (c) {
      case U'(':
        return group(options, depth);
      case U'[':
        return single(read_class(reader_), options);
      case U'.':
        last_folded_ = U'\0';
        return options.dot_is_all ? "(?s:.)" : "[^\\n]";
      case U'^':
        return "(?m:^)";
      case U'$':
        return "(?m:$)";
      case U'*':
      case U'+':
      case U'?':
        reader_.refuse("a quantifier with nothing to repeat");
      case U'\\':
        return escape(options);
      case U'{': {
        reader_.go_back_to(reader_.position() - 1);
        std::string nothing;
        if (interval(nothing)) reader_.refuse("a quantifier with nothing to repeat");
        return single({reader_.take(), {}}, options);
      }
      default:
        return single({c, {}}, options);
    }
  }

  std::string escape(const Options& options) {
    if (auto character = read_escape(reader_, false)) return single(*character, options);
    static const std::string word = CodePointSet(flag_ranges(kWord)).as_class();
    switch (const char32_t c = reader_.take()) {
      case U'A':
        return "\\A";
      case U'z':
        return "\\z";
      case U'Z':
        return "(?=\\n?\\z)";
      case U'b':
        return fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", word);
      case U'B':
        return fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0}))", word);
      default: {
        std::string name;
        append_utf8(name, c);
        reader_.refuse("\\" + name);
      }
    }
  }

  // A literal character or a class. If case is ignored, only what both engines fold alike is accepted.
  std::string single(const SingleCharacter& character, const Options& options) {
    if (!character.literal) {
      last_folded_ = U'\0';
      if (!options.ignore_case || character.set.ranges().empty()) return character.set.as_class();
      if (character.set.ranges().back().second > 0x7F && character.set.has_case()) {
        reader_.refuse("a class with non-ASCII letters where case is ignored");
      }
      return character.set.as_class();
    }
    const char32_t c = *character.literal;
    if (options.ignore_case) check_folding(c);
    return fmt::format("\\x{{{:x}}}", static_cast<std::uint32_t>(c));
  }

  // If case is ignored, Oniguruma lets "ss" match U+00DF and "fi" match U+FB01; PCRE2 does not.
  void check_folding(char32_t c) {
    if (c > 0x7F) reader_.refuse("a non-ASCII character where case is ignored");
    const char32_t folded = c >= U'A' && c <= U'Z' ? c - U'A' + U'a' : c;
    const auto is_one_of = [](char32_t a, std::u32string_view set) { return set.find(a) != set.npos; };
    const bool after_s = is_one_of(last_folded_, U"s*") && is_one_of(folded, U"st");
    const bool after_f = is_one_of(last_folded_, U"f*") && is_one_of(folded, U"fil");
    if (after_s || after_f) reader_.refuse("ss, st, ff, fi or fl where case is ignored: each is also a single letter");
    last_folded_ = folded;
  }

  bool read_leading_options(Options& options) {
    const std::size_t begin = reader_.position();
    if (!reader_.take_if(U"(?")) return false;
    Options changed = options;
    if (read_options(changed) && reader_.take_if(U")")) {
      options = changed;
      return true;
    }
    reader_.go_back_to(begin);
    return false;
  }

  // "im-x" of (?im-x: ...), at least one letter. Oniguruma's m is what others call s.
  bool read_options(Options& options) {
    bool value = true, any = false;
    while (true) {
      if (reader_.take_if(U"i")) {
        options.ignore_case = value;
      } else if (reader_.take_if(U"m")) {
        options.dot_is_all = value;
      } else if (value && reader_.take_if(U"-")) {
        value = false;
        continue;
      } else {
        return any;
      }
      any = true;
    }
  }

  // '(' has been taken.
  std::string group(Options options, int depth) {
    std::string open = opening(options);
    std::string inside = alternatives(options, depth + 1);
    if (!reader_.take_if(U")")) reader_.refuse("'(' without ')'");
    last_folded_ = U'*';  // a group's end may join what follows it
    return open + inside + ")";
  }

  std::string opening(Options& options) {
    if (reader_.peek() != U'?') return "(?:";  // captures are not needed
    static constexpr std::array<std::pair<std::u32string_view, const char*>, 6> kKinds = {
        {{U"?:", "(?:"}, {U"?=", "(?="}, {U"?!", "(?!"}, {U"?<=", "(?<="}, {U"?<!", "(?<!"}, {U"?>", "(?>"}}};
    for (const auto& [theirs, ours] : kKinds) {
      if (reader_.take_if(theirs)) return ours;
    }
    reader_.take();
    if (reader_.take_if(U"<")) {  // a name that nothing refers to
      while (reader_.take() != U'>') {
      }
      return "(?:";
    }
    if (!read_options(options) || !reader_.take_if(U":")) {
      reader_.refuse("a group (?...) of this kind, or options that are not at the start of a group");
    }
    return "(?:";
  }

  std::string quantifiers(std::string atom) {
    if (reader_.at_end()) return atom;
    const char32_t c = reader_.peek();
    if (c == U'*' || c == U'+' || c == U'?') {
      reader_.take();
      atom += static_cast<char>(c);
      if (reader_.take_if(U"?")) {
        atom += '?';
      } else if (reader_.take_if(U"+")) {
        atom += '+';
      }
    } else if (c == U'{') {
      if (!interval(atom)) return atom;
    } else {
      return atom;
    }
    const char32_t next = reader_.peek();
    if (next == U'*' || next == U'+' || next == U'?') reader_.refuse("a quantifier on a quantifier");
    return atom;
  }

  // {n}, {n,}, {,m} or {n,m}; false, with nothing taken, if it is only a brace.
  bool interval(std::string& atom) {
    const std::size_t begin = reader_.position();
    reader_.take();
    const auto least = number();
    const bool comma = reader_.take_if(U",");
    const auto most = comma ? number() : least;
    if ((!least && !most) || !reader_.take_if(U"}")) {
      reader_.go_back_to(begin);
      return false;
    }
    if (least && most && *least > *most) reader_.refuse("a quantifier {n,m} with n above m");
    atom += fmt::format("{{{},{}}}", least.value_or(0), most ? std::to_string(*most) : "");
    if (reader_.take_if(U"?")) {
      if (!comma) reader_.refuse("{n}?");  // Oniguruma: (?:...{n})?
      atom += '?';
    } else if (reader_.take_if(U"+")) {  // not possessive, but repeated
      atom = "(?:" + atom + ")+";
    }
    return true;
  }

  std::optional<int> number() {
    std::optional<int> value;
    while (reader_.peek() >= U'0' && reader_.peek() <= U'9') {
      value = value.value_or(0) * 10 + static_cast<int>(reader_.take() - U'0');
      if (*value > kMaxRepeats) reader_.refuse("more than 1000 repetitions");
    }
    return value;
  }

  ExpressionReader reader_;
  char32_t last_folded_ = U'\0';  // the previous letter if case is ignored; '*': any
};

}  // namespace

std::string to_pcre(const std::string& expression, const std::string& where) {
  return Translator(expression, where).run();
}

}  // namespace tessera::internal
