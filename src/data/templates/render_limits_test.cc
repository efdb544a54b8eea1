// A template is hostile input: what it may take is bounded, and each bound ends with a message.
#include <gtest/gtest.h>

#include "data/templates/chat_template.h"
#include "support/contains.h"
#include "support/message_of.h"

namespace tessera {
namespace {

std::string refusal_of(const std::string& text, const RenderLimits& limits = {}) {
  return message_of([&] {
    const auto chat = ChatTemplate::of_text(text, "t").render({{"deep", Json::array()}}, {.limits = limits});
    throw Error("rendered " + std::to_string(chat.text.size()) + " bytes");
  });
}

TEST(RenderLimits, StepsAreCounted) {
  EXPECT_EQ(
      refusal_of("{% for a in range(9) %}{% for b in range(9) %}{{ b }}{% endfor %}{% endfor %}", {.num_steps = 100}),
      "t:1:50: rendering takes more than 100 steps");
  const std::string loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
  EXPECT_TRUE(contains(refusal_of(loops), "takes more than 10,000,000 steps"));
}

TEST(RenderLimits, TextIsBoundedBeforeItIsMade) {
  EXPECT_TRUE(contains(refusal_of("{{ 'x' * 1000000000000000 }}"), "steps"));
  EXPECT_TRUE(contains(refusal_of("{{ 'a'|indent(1000000000000000) }}"), "steps"));
  EXPECT_TRUE(contains(refusal_of("{{ [1]|tojson(indent=1000000000000000) }}"), "steps"));
  EXPECT_TRUE(contains(refusal_of("{% set ns = namespace(t='x') %}{% for i in range(99) %}{% set ns.t = ns.t ~ ns.t %}"
                                  "{% endfor %}"),
                       "steps"));
  EXPECT_TRUE(contains(refusal_of("{% set x = 'ab' * 1000 %}{{ x.replace('a', x).replace('a', x).replace('a', x) }}"),
                       "steps"));
}

TEST(RenderLimits, OutputIsBounded) {
  EXPECT_EQ(refusal_of("{% for i in range(10) %}{{ 'abcd' }}{% endfor %}", {.output_bytes = 20}),
            "t:1:25: the text grows beyond 20 bytes");
  EXPECT_TRUE(contains(refusal_of("{{ 'x' * 70000000 }}"), "the text grows beyond 67108864 bytes"));
}

TEST(RenderLimits, RecursionIsBounded) {
  EXPECT_TRUE(contains(refusal_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), "nested more than 1000 levels"));
  EXPECT_TRUE(
      contains(refusal_of("{% macro f(x) %}{{ [[[[[[[[[[[[[[[[[[f(x)]]]]]]]]]]]]]]]]]] }}{% endmacro %}{{ f(1) }}"),
               "nested more than"));
}

TEST(RenderLimits, NestedValuesAreBounded) {
  EXPECT_TRUE(contains(refusal_of("{% set ns = namespace(l=[]) %}{% for i in range(999) %}{% set ns.l = [ns.l] %}"
                                  "{% endfor %}"),
                       "values are nested more than 200 levels deep"));
  // Two lists that share their parts: as text, they double at each level.
  EXPECT_TRUE(contains(refusal_of("{% set ns = namespace(l=[]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] %}"
                                  "{% endfor %}{{ ns.l }}"),
                       "steps"));
  Json deep = Json::array();
  for (int i = 0; i < 300; ++i) deep = Json::array({std::move(deep)});
  const auto chat = ChatTemplate::of_text("x", "t");
  EXPECT_TRUE(contains(message_of([&] { chat.render({{"deep", deep}}); }), "nested more than 200 levels"));
}

TEST(RenderLimits, SyntaxIsBounded) {
  const auto repeated = [](const std::string& part, int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += part;
    return all;
  };
  EXPECT_TRUE(contains(refusal_of("{{ " + repeated("(", 9999) + repeated(")", 9999) + " }}"), "more than 200 levels"));
  EXPECT_TRUE(contains(refusal_of("{{ " + repeated("-", 9999) + "1 }}"), "more than 200 levels"));
  EXPECT_TRUE(contains(refusal_of("{{ " + repeated("not ", 9999) + "1 }}"), "more than 200 levels"));
  EXPECT_TRUE(contains(refusal_of("{{ 1" + repeated(" + 1", 9999) + " }}"), "more than 200 levels"));
  EXPECT_TRUE(contains(refusal_of("{{ x" + repeated(".x", 9999) + " }}"), "more than 200 levels"));
  EXPECT_TRUE(contains(refusal_of(repeated("{% if x %}", 9999)), "more than 100 levels"));
  EXPECT_TRUE(contains(refusal_of("{% if x %}" + repeated("{% elif x %}", 9999)), "more than 100 levels"));
  EXPECT_TRUE(contains(refusal_of(std::string(5'000'000, 'x')), "at most 4194304 bytes"));
}

// A filter that asks the loop that waits for it would move that loop under its feet.
TEST(RenderLimits, AFilterCannotAskItsOwnLoop) {
  const std::string header = "{% set ns = namespace(l={'length': 0}) %}{% for i in [1, 2, 3] if ns.l.";
  for (const char* question : {"last or true", "nextitem or true"}) {
    EXPECT_TRUE(contains(refusal_of(header + question + " %}{% set ns.l = loop %}{% endfor %}"),
                         "the filter of a loop cannot ask"))
        << question;
  }
}

TEST(RenderLimits, NumbersOf64BitsAreEnough) {
  for (const char* expression :
       {"9223372036854775807 + 1", "-9223372036854775807 - 2", "3037000500 * 3037000500", "9223372036854775808",
        "'99999999999999999999'|int", "-(-9223372036854775807 - 1)", "'1e30'|int"}) {
    EXPECT_TRUE(contains(refusal_of(std::string("{{ ") + expression + " }}"), "beyond 64 bits")) << expression;
  }
}

}  // namespace
}  // namespace tessera
