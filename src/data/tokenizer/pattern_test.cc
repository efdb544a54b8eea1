#include "data/tokenizer/pattern.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "data/tokenizer/expression.h"
#include "support/random_text.h"

namespace tessera::internal {
namespace {

std::vector<std::string> matches_of(const Pattern& pattern, std::string_view text) {
  std::vector<Match> matches;
  pattern.find_all(text, matches);
  std::vector<std::string> found;
  for (const Match& match : matches) found.emplace_back(text.substr(match.begin, match.end - match.begin));
  return found;
}

using Texts = std::vector<std::string>;

TEST(Gpt2Pattern, SplitsAsGpt2Does) {
  const auto pattern = make_pattern(kGpt2Expression, "");
  EXPECT_EQ(matches_of(*pattern, "I'll pay 12,50  now \n"),
            (Texts{"I", "'ll", " pay", " 12", ",", "50", " ", " now", " \n"}));
  EXPECT_EQ(matches_of(*pattern, "'S 's\t\tx"), (Texts{"'", "S", " '", "s", "\t", "\t", "x"}));
}

TEST(BloomPattern, StopsAtWhatItsClassHolds) {
  const auto pattern = make_pattern(kBloomExpression, "");
  EXPECT_EQ(matches_of(*pattern, "Hello, wo(rl)d|x  \u2026[a]b\u3002c"),
            (Texts{"Hello", " wo", "rl", "d", "x", "[a]b", "c"}));
}

TEST(Scanners, EqualPcre) {
  if (!has_pcre()) GTEST_SKIP() << "built without PCRE2";
  for (const char* expression : {kGpt2Expression, kBloomExpression}) {
    const auto scanner = make_pattern(expression, ""), pcre = make_pcre_pattern(expression, "");
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      const std::string text = replace_ill_formed(RandomText::make(99, i));
      ASSERT_EQ(matches_of(*scanner, text), matches_of(*pcre, text)) << expression << "\n" << text;
    }
    for (char32_t c = 0; c < 0x110000; ++c) {
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      std::string text = "a";
      append_utf8(text, c);
      text += " b";
      ASSERT_EQ(matches_of(*scanner, text), matches_of(*pcre, text)) << expression << ", U+" << std::hex << int(c);
    }
  }
}

TEST(Expression, ReadsOnigurumasSyntax) {
  if (!has_pcre()) GTEST_SKIP() << "built without PCRE2";
  const auto found = [](const char* expression, std::string_view text) {
    return matches_of(*make_pattern(expression, ""), text);
  };
  EXPECT_EQ(found("[a[bc]]+", "abcd"), (Texts{"abc"}));             // a class in a class
  EXPECT_EQ(found("[a-d&&[^b]]", "abcd"), (Texts{"a", "c", "d"}));  // an intersection
  EXPECT_EQ(found(R"(\h+)", "xyz0aF"), (Texts{"0aF"}));             // hexadecimal digits, not blanks
  EXPECT_EQ(found("a{2}+", "aaaaa"), (Texts{"aaaa"}));              // repeated, not possessive
  EXPECT_EQ(found("(?m:a.)", "a\n"), (Texts{"a\n"}));               // m lets the dot match line ends
  EXPECT_EQ(found("^.", "a\nb"), (Texts{"a", "b"}));                // ^ matches at each line
  EXPECT_EQ(found(R"(\s)", "\u180E\u0085"), (Texts{"\u0085"}));     // U+180E is not a space
  EXPECT_EQ(found("a{,2}b", "aaab"), (Texts{"aab"}));
  EXPECT_EQ(found("x*", "ax"), (Texts{"", "x"}));  // no empty match right after another
}

TEST(Expression, RefusesByNameWhatItWouldReadDifferently) {
  const auto message = [](const char* expression) -> std::string {
    try {
      to_pcre(expression, "t.json: pre_tokenizer");
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message("a(?i)b"),
            "t.json: pre_tokenizer: the expression \"a(?i)b\" cannot be used: not supported at character 5: a group "
            "(?...) of this kind, or options that are not at the start of a group");
  EXPECT_NE(message("(?i:ss)").find("ss, st, ff, fi or fl where case is ignored"), std::string::npos);
  EXPECT_NE(message(R"(\p{Greek})").find("the property \\p{Greek}"), std::string::npos);
  EXPECT_NE(message(R"((a)\1)").find("\\1"), std::string::npos);
  EXPECT_NE(message(R"(\X)").find("\\X"), std::string::npos);
  EXPECT_NE(message("a{3}?").find("{n}?"), std::string::npos);
  EXPECT_NE(message("a**").find("a quantifier on a quantifier"), std::string::npos);
  EXPECT_NE(message("[a").find("[ without ]"), std::string::npos);
  EXPECT_NE(message("(a").find("'(' without ')'"), std::string::npos);
  EXPECT_NE(message("a)").find("')' without '('"), std::string::npos);
  EXPECT_NE(message("[[:alpha:]]").find("a class [:...:]"), std::string::npos);
}

TEST(Expression, OneThatNeverEndsIsStopped) {
  if (!has_pcre()) GTEST_SKIP() << "built without PCRE2";
  const auto pattern = make_pattern("(?:a|aa)+[bc]", "t.json");
  EXPECT_THROW(matches_of(*pattern, std::string(100, 'a')), UsageError);
}

TEST(Expression, WithoutPcreOthersAreRefused) {
  if (has_pcre()) GTEST_SKIP() << "built with PCRE2";
  EXPECT_THROW(make_pattern("a+", "t.json"), UsageError);
}

}  // namespace
}  // namespace tessera::internal
