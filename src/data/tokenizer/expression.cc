// Regular expressions of tokenizer files, matched by Oniguruma, which they are written for.
//
// The original brings an Oniguruma with Unicode 16; an installed one may be older. So \p{L}, \w, \d and \b are spelled
// out from our own tables (unicode.h) first, and whatever else depends on the version is refused by name.
#include "data/tokenizer/pattern.h"

#ifndef TESSERA_HAS_ONIGURUMA

namespace tessera::internal {

Pattern make_expression(const std::string&, const std::string&) {
  return nullptr;
}

}  // namespace tessera::internal

#else

#include <fmt/format.h>
#include <oniguruma.h>

#include "core/error.h"
#include "core/text.h"
#include "data/tokenizer/characters.h"
#include "data/tokenizer/unicode.h"

namespace tessera::internal {
namespace {

// [\x{41}-\x{5a}...]: valid both on its own and within another class.
std::string class_of(const std::vector<CodePointRange>& ranges, bool negate) {
  std::string text = negate ? "[^" : "[";
  for (const auto& [first, last] : ranges) {
    text += fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", std::uint32_t{first}, std::uint32_t{last});
  }
  return text + "]";
}

// Spells out the classes of an expression, from left to right; everything else is copied.
class ClassExpander {
 public:
  ClassExpander(const std::string& expression, const std::string& where) : text_(expression), where_(where) {}

  std::string run() {
    while (at_ < text_.size()) {
      if (take_if("\\")) {
        expand_escape();
      } else if (depth_ == 0 && take_if("(?#")) {
        read_up_to(')');
      } else if (depth_ == 0 && take_if("(?")) {
        check_options();
      } else if (take_if("[")) {
        open_class();
      } else {
        if (depth_ > 0 && text_[at_] == ']') --depth_;
        result_ += text_[at_++];
      }
    }
    return std::move(result_);
  }

 private:
  void expand_escape() {
    if (at_ == text_.size()) refuse("a \\ at the end");
    const char c = text_[at_++];
    const bool in_class = depth_ > 0;
    if (c == 'p' || c == 'P') {
      expand_property(c == 'P');
    } else if (c == 'd' || c == 'D') {
      add_class(*category_ranges("Nd"), c == 'D');
    } else if (c == 'w' || c == 'W') {
      result_ += word_class(in_class, c == 'W');
    } else if (!in_class && c == 'b') {
      result_ += fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", word_class(false, false));
    } else if (!in_class && c == 'B') {
      result_ += fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0}))", word_class(false, false));
    } else if (std::string_view("XyYcCM").find(c) != std::string_view::npos) {  // graphemes; control characters
      refuse(std::string("\\") + c);
    } else {
      result_ += {'\\', c};
    }
  }

  // Oniguruma includes the six superscript digits and fractions of Latin-1 in \w, but not in [\w].
  static std::string word_class(bool in_class, bool negate) {
    static const std::vector<CodePointRange> alone = flag_ranges(kWord), within = flag_ranges(kWord | kPlainWord);
    return class_of(in_class ? within : alone, negate);
  }

  // After "\p".
  void expand_property(bool negate) {
    if (!take_if("{")) refuse("\\p without braces");
    if (take_if("^")) negate = !negate;
    const std::string name = read_up_to('}');
    const auto ranges = category_ranges(name);
    if (!ranges) {
      refuse(fmt::format("the property \\p{{{}}}; supported are general categories (L, Lu, N, Nd, P, ...)",
                         printable(name, 60)));
    }
    add_class(*ranges, negate);
  }

  // On its own, a class such as \p{Lu} does not ignore case; one in brackets does.
  void add_class(const std::vector<CodePointRange>& ranges, bool negate) {
    const bool needs_case = depth_ == 0 && may_ignore_case_;
    result_ += needs_case ? "(?-i:" + class_of(ranges, negate) + ")" : class_of(ranges, negate);
  }

  // After "(?". The other options change what \w, \s and white space in the expression mean.
  void check_options() {
    result_ += "(?";
    for (std::size_t i = at_; i < text_.size() && text_[i] != ')' && text_[i] != ':'; ++i) {
      const bool is_letter = (text_[i] >= 'a' && text_[i] <= 'z') || (text_[i] >= 'A' && text_[i] <= 'Z');
      if (!is_letter && text_[i] != '-') return;  // not options: (?<name>...), (?=...)
      may_ignore_case_ |= text_[i] == 'i';
      if (is_letter && text_[i] != 'i' && text_[i] != 'm') refuse("options (?...) other than i and m");
    }
  }

  // After "[".
  void open_class() {
    if (depth_ > 0 && take_if(":")) {
      const std::size_t begin = at_;
      const bool negate = take_if("^");
      if (take_if("digit:]")) {
        result_ += class_of(*category_ranges("Nd"), negate);
        return;
      }
      if (take_if("word:]")) {
        result_ += word_class(true, negate);
        return;
      }
      if (!take_if("space:]") && !take_if("xdigit:]")) {
        refuse("a class [:...:] other than space, digit, word and xdigit");
      }
      result_ += "[:" + text_.substr(begin, at_ - begin);
      return;
    }
    ++depth_;
    result_ += '[';
    if (take_if("^")) result_ += '^';
    if (at_ < text_.size() && text_[at_] == ']') refuse("a class that begins with ']'; write \\]");
  }

  bool take_if(std::string_view wanted) {
    if (!std::string_view(text_).substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }

  std::string read_up_to(char end) {
    const std::size_t found = text_.find(end, at_);
    if (found == std::string::npos) refuse(fmt::format("it ends without {}", end));
    std::string read = text_.substr(at_, found - at_);
    at_ = found + 1;
    return read;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw UsageError(fmt::format("{}: the expression \"{}\" cannot be used: not supported at character {}: {}", where_,
                                 printable(text_, 200), to_utf32(text_.substr(0, at_)).size(), what));
  }

  const std::string& text_;
  const std::string& where_;
  std::string result_;
  std::size_t at_ = 0;
  int depth_ = 0;                 // of classes within classes
  bool may_ignore_case_ = false;  // an option (?i) came before
};

class OnigurumaPattern {
 public:
  OnigurumaPattern(const std::string& expression, const std::string& where) : expression_(expression), where_(where) {
    static OnigEncoding encoding = ONIG_ENCODING_UTF8;
    static const int initialized = onig_initialize(&encoding, 1);
    if (initialized != ONIG_NORMAL) fail("cannot be used", initialized, nullptr);
    const std::string expanded = ClassExpander(expression, where).run();
    const OnigUChar* const text = bytes_of(expanded);
    regex_t* compiled = nullptr;
    OnigErrorInfo error{};
    const int result = onig_new(&compiled, text, text + expanded.size(), ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
                                ONIG_SYNTAX_DEFAULT, &error);
    compiled_.reset(compiled, onig_free);
    if (result != ONIG_NORMAL) fail("cannot be used", result, &error);
  }

  void operator()(std::string_view text, std::vector<Match>& matches) const {
    const std::unique_ptr<OnigRegion, FreeRegion> region(onig_region_new());
    const OnigUChar* const begin = bytes_of(text);
    const OnigUChar* const end = begin + text.size();
    std::size_t from = 0;
    bool has_last = false;
    while (from <= text.size()) {
      // Oniguruma itself stops after ten million steps back on one match.
      const int result = onig_search(compiled_.get(), begin, end, begin + from, end, region.get(), ONIG_OPTION_NONE);
      if (result == ONIG_MISMATCH) return;
      if (result < 0) fail("gave up on a text", result, nullptr);
      const Match match{static_cast<std::size_t>(region->beg[0]), static_cast<std::size_t>(region->end[0])};
      // An empty match right after the last one does not count (as in the original's iterator).
      if (match.begin == match.end && has_last && matches.back().end == match.end) {
        if (from == text.size()) return;
        from += utf8_length(static_cast<unsigned char>(text[from]));
        continue;
      }
      matches.push_back(match);
      has_last = true;
      from = match.end;
    }
  }

 private:
  struct FreeRegion {
    void operator()(OnigRegion* region) const { onig_region_free(region, 1); }
  };

  static const OnigUChar* bytes_of(std::string_view text) { return reinterpret_cast<const OnigUChar*>(text.data()); }

  [[noreturn]] void fail(const char* what, int code, OnigErrorInfo* error) const {
    OnigUChar message[ONIG_MAX_ERROR_MESSAGE_LEN] = "";
    error == nullptr ? onig_error_code_to_str(message, code) : onig_error_code_to_str(message, code, error);
    throw UsageError(fmt::format("{}: the expression \"{}\" {}: {}", where_, printable(expression_, 200), what,
                                 reinterpret_cast<const char*>(message)));
  }

  std::shared_ptr<regex_t> compiled_;
  std::string expression_, where_;
};

}  // namespace

Pattern make_expression(const std::string& expression, const std::string& where) {
  return OnigurumaPattern(expression, where);
}

}  // namespace tessera::internal

#endif
