#include "data/tokenizer/pattern.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "support/message_of.h"
#include "support/tokenizer_references.h"

namespace tessera::internal {
namespace {

std::vector<std::string> matches_of(const Pattern& pattern, std::string_view text) {
  std::vector<Match> matches;
  pattern(text, matches);
  std::vector<std::string> found;
  for (const Match& match : matches) found.emplace_back(text.substr(match.begin, match.end - match.begin));
  return found;
}

using Texts = std::vector<std::string>;

TEST(Gpt2Pattern, SplitsAsGpt2Does) {
  const auto pattern = make_pattern(kGpt2Expression, "");
  EXPECT_EQ(matches_of(pattern, "I'll pay 12,50  now \n"),
            (Texts{"I", "'ll", " pay", " 12", ",", "50", " ", " now", " \n"}));
  EXPECT_EQ(matches_of(pattern, "'S 's\t\tx"), (Texts{"'", "S", " '", "s", "\t", "\t", "x"}));
}

TEST(BloomPattern, StopsAtWhatItsClassHolds) {
  const auto pattern = make_pattern(kBloomExpression, "");
  EXPECT_EQ(matches_of(pattern, "Hello, wo(rl)d|x  \u2026[a]b\u3002c"),
            (Texts{"Hello", " wo", "rl", "d", "x", "[a]b", "c"}));
}

TEST(Llama3Pattern, SplitsAsLlama3Does) {
  const auto pattern = make_pattern(kLlama3Expression, "");
  EXPECT_EQ(matches_of(pattern, "I'LL pay$12345 (now)!\r\n \n  x\t'\u017Fy  "),
            (Texts{"I", "'LL", " pay", "$", "123", "45", " (", "now", ")!\r\n", " \n", " ", " x", "\t", "'\u017F", "y",
                   "  "}));
  EXPECT_EQ(matches_of(make_pattern(kQwen2Expression, ""), "a12"), (Texts{"a", "1", "2"}));
}

TEST(TekkenPattern, SplitsWhereLowerCaseTurnsIntoUpperCase) {
  const auto pattern = make_pattern(kTekkenExpression, "");
  EXPECT_EQ(matches_of(pattern, "camelCase HTTPServer \u4f60\u597dAB x12 //\n/a"),
            (Texts{"camel", "Case", " HTTPServer", " \u4f60\u597d", "AB", " x", "1", "2", " //\n/", "a"}));
  EXPECT_EQ(matches_of(make_pattern(kGpt4oExpression, ""), "I'LL don't 1234"),
            (Texts{"I'LL", " don't", " ", "123", "4"}));
}

TEST(Scanners, EqualOniguruma) {
  if (!has_oniguruma()) GTEST_SKIP() << "built without Oniguruma";
  for (const char* expression :
       {kGpt2Expression, kBloomExpression, kLlama3Expression, kQwen2Expression, kTekkenExpression, kGpt4oExpression}) {
    const auto scanner = make_pattern(expression, ""), oniguruma = make_expression(expression, "");
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      const std::string text = replace_ill_formed(RandomText::make(99, i));
      ASSERT_EQ(matches_of(scanner, text), matches_of(oniguruma, text)) << expression << "\n" << text;
    }
    for (char32_t c = 0; c < 0x110000; ++c) {
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      std::string text = "a";
      append_utf8(text, c);
      text += " b'";
      append_utf8(text, c);
      ASSERT_EQ(matches_of(scanner, text), matches_of(oniguruma, text)) << expression << ", U+" << std::hex << int(c);
    }
  }
}

TEST(Expression, ReadsOnigurumasSyntax) {
  if (!has_oniguruma()) GTEST_SKIP() << "built without Oniguruma";
  const auto found = [](const char* expression, std::string_view text) {
    return matches_of(make_pattern(expression, ""), text);
  };
  EXPECT_EQ(found("[a[bc]]+", "abcd"), (Texts{"abc"}));             // a class in a class
  EXPECT_EQ(found("[a-d&&[^b]]", "abcd"), (Texts{"a", "c", "d"}));  // an intersection
  EXPECT_EQ(found(R"(\h+)", "xyz0aF"), (Texts{"0aF"}));             // hexadecimal digits, not blanks
  EXPECT_EQ(found("a{2}+", "aaaaa"), (Texts{"aaaa"}));              // repeated, not possessive
  EXPECT_EQ(found("(?m:a.)", "a\n"), (Texts{"a\n"}));               // m lets the dot match line ends
  EXPECT_EQ(found("^.", "a\nb"), (Texts{"a", "b"}));                // ^ matches at each line
  EXPECT_EQ(found(R"(\s)", "\u180E\u0085"), (Texts{"\u0085"}));     // U+180E is not a space
  EXPECT_EQ(found("a{,2}b", "aaab"), (Texts{"aab"}));
  EXPECT_EQ(found("a(?i)b|c", "aBaC"), (Texts{"aB", "aC"}));         // a(?i:b|c)
  EXPECT_EQ(found(R"((?i)[\p{Lu}]\p{Lu})", "aBab"), (Texts{"aB"}));  // only classes in brackets ignore case
  EXPECT_EQ(found("(a)\\1", "aab"), (Texts{"aa"}));
  EXPECT_EQ(found("(?i:ss)", "\u00DF"), (Texts{"\u00DF"}));
  EXPECT_EQ(found("x*", "ax"), (Texts{"", "x"}));  // no empty match right after another
}

TEST(Expression, RefusesByNameWhatItWouldReadDifferently) {
  if (!has_oniguruma()) GTEST_SKIP() << "built without Oniguruma";
  const auto message = [](const char* expression) {
    return message_of([&] { make_expression(expression, "t.json: pre_tokenizer"); });
  };
  EXPECT_EQ(message(R"(\p{Greek})"),
            "t.json: pre_tokenizer: the expression \"\\p{Greek}\" cannot be used: not supported at character 9: the "
            "property \\p{Greek}; supported are general categories (L, Lu, N, Nd, P, ...)");
  EXPECT_NE(message(R"(\X)").find("\\X"), std::string::npos);
  EXPECT_NE(message("(?x: a)").find("options (?...) other than i and m"), std::string::npos);
  EXPECT_NE(message("[[:alpha:]]").find("a class [:...:]"), std::string::npos);
  EXPECT_NE(message("[]a]").find("a class that begins with ']'"), std::string::npos);
}

TEST(Expression, SyntaxErrorsAreNamed) {
  if (!has_oniguruma()) GTEST_SKIP() << "built without Oniguruma";
  EXPECT_EQ(message_of([] { make_expression("(a", "t.json"); }),
            "t.json: the expression \"(a\" cannot be used: end pattern with unmatched parenthesis");
  for (const char* expression : {"[a", "a)", "*a", "\\", R"(\p{L)", "(?<n>a)\\k<m>"}) {
    EXPECT_THROW(make_expression(expression, "t.json"), UsageError) << expression;
  }
}

// Unicode 15 and 16 have letters and digits that an installed Oniguruma may not know.
TEST(Expression, KnowsTheOriginalsVersionOfUnicode) {
  if (!has_oniguruma()) GTEST_SKIP() << "built without Oniguruma";
  const std::string letter = "\U00010D4A", digit = "\U00010D40";  // Garay
  for (const char* expression : {R"(\p{L})", R"([\p{Lu}\p{Ll}\p{Lo}])", R"([\w&&\D])", R"(\b\w(?=.))", R"(\P{N})"}) {
    EXPECT_EQ(matches_of(make_expression(expression, ""), letter + digit), (Texts{letter})) << expression;
  }
  EXPECT_EQ(matches_of(make_expression(R"(\d|[[:digit:]])", ""), letter + digit), (Texts{digit}));
}

TEST(Expression, OneThatNeverEndsIsStopped) {
  if (!has_oniguruma()) GTEST_SKIP() << "built without Oniguruma";
  const auto pattern = make_pattern("(?:a|aa)+[bc]", "t.json");
  EXPECT_THROW(matches_of(pattern, std::string(100, 'a')), UsageError);
}

TEST(Expression, WithoutOnigurumaOthersAreRefused) {
  if (has_oniguruma()) GTEST_SKIP() << "built with Oniguruma";
  EXPECT_THROW(make_pattern("a+", "t.json"), UsageError);
}

}  // namespace
}  // namespace tessera::internal
