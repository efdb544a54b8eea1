// What the references cannot say: messages with their places, the clock, marks of generation, and threads.
#include "data/templates/chat_template.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/contains.h"
#include "support/message_of.h"

namespace tessera {
namespace {

std::string mistake_in(const std::string& text, const Json& variables = Json::object()) {
  return message_of([&] { ChatTemplate::of_text(text, "chat.jinja").render(variables); });
}

TEST(ChatTemplate, MistakesHaveTheirPlaceAndWhatIsExpected) {
  EXPECT_EQ(mistake_in("a\n  {% if x %}"),
            "chat.jinja:2:13: expected {% elif %} or {% else %} or {% endif %} before the end of the template");
  EXPECT_EQ(mistake_in("{{ 1 + }}"), "chat.jinja:1:8: expected a value, found '}}'");
  EXPECT_EQ(mistake_in("{{ (1 }}"), "chat.jinja:1:7: expected ')', found '}'");
  EXPECT_EQ(mistake_in("\u4F60{{ 'a }}"), "chat.jinja:1:5: expected ' at the end of this text");
  EXPECT_EQ(mistake_in("{% fro x %}"),
            "chat.jinja:1:4: the tag 'fro' is unknown or has nothing to end here, did you mean 'for'?");
  EXPECT_EQ(mistake_in("{% include 'passwd' %}"),
            "chat.jinja:1:4: {% include %} is not supported: a chat template is one text");
  EXPECT_EQ(mistake_in("{# open"), "chat.jinja:1:1: expected #} at the end of this comment");
  EXPECT_EQ(mistake_in("x\xFF"), "chat.jinja: expected UTF-8, found something else at byte 1");
}

TEST(ChatTemplate, MistakesOfRenderingHaveTheirPlace) {
  EXPECT_EQ(mistake_in("\n{{ user.name }}"), "chat.jinja:2:8: 'user' is undefined");
  EXPECT_EQ(mistake_in("{{ 'a' + 1 }}"), "chat.jinja:1:8: can only concatenate str (not \"int\") to str");
  EXPECT_EQ(mistake_in("{{ m.x.y }}", {{"m", Json::object()}}), "chat.jinja:1:7: 'dict object' has no attribute 'x'");
  EXPECT_EQ(mistake_in("{{ [].append(1) }}"), "chat.jinja:1:6: the method 'append' of 'list' is not supported");
  EXPECT_EQ(mistake_in("{% macro f(a) %}{{ a }}{% endmacro %}\n{{ f(1, 2) }}"),
            "chat.jinja:2:4: macro 'f' takes not more than 1 arguments, found 2");
}

TEST(ChatTemplate, UnknownFiltersAndTestsAreNamedWhereTheyAreUsed) {
  EXPECT_EQ(mistake_in("{{ x | uper }}"), "chat.jinja:1:8: the filter 'uper' is not supported, did you mean 'upper'?");
  EXPECT_EQ(mistake_in("{{ x is mapp }}"), "chat.jinja:1:6: the test 'mapp' is not supported, did you mean 'mapping'?");
  EXPECT_EQ(ChatTemplate::of_text("{% if x %}{{ x | nope }}{% endif %}{{ y | nope if y else 1 }}", "t").render({}).text,
            "1");
}

TEST(ChatTemplate, WhatIsLeftOutOfTheLanguageIsRefusedByName) {
  const auto expect = [](const std::string& text, const std::string& mistake) {
    EXPECT_EQ(mistake_in(text), "chat.jinja:1:" + mistake) << text;
  };
  expect("{{ x | urlize }}", "8: the filter 'urlize' is not supported");
  expect("{{ [] | groupby('a') }}", "9: the filter 'groupby' is not supported");
  expect("{{ 9 is divisibleby 3 }}", "6: the test 'divisibleby' is not supported");
  expect("{{ 'a'.ljust(3) }}", "7: the method 'ljust' of 'str' is not supported");
  expect("{{ {}.update({}) }}", "6: the method 'update' of 'dict' is not supported");
  expect("{{ cycler(1) }}", "4: cycler is not supported");
  expect("{% for x in [1] %}{{ loop.cycle(1) }}{% endfor %}", "26: loop.cycle is not supported");
  expect("{% for x in [] recursive %}{% endfor %}", "16: recursive loops are not supported: call a macro");
  expect("{% call f() %}{% endcall %}", "4: {% call %} is not supported");
  expect("{% raw %}", "1: {% raw %} is not supported: write {{ '{{' }} instead");
  expect("{{ f(*x) }}", "6: arguments by * and ** are not supported");
  expect("{{ 2 ** 3 }}", "6: the operator ** is not supported");
  expect("{{ 1 < 2 < 3 }}", "10: comparisons in a chain are not supported: join them by 'and'");
  expect("{{ '%s' % 1 }}", "9: formatting texts by % is not supported: join them by ~");
  expect("{{ '{:>5}'.format(1) }}", "11: format supports one {} per value only: use ~");
  expect("{{ {1.5: 2} }}", "4: a key of type 'float' is not supported");
  expect("{{ '\\101' }}", "4: the escape \\1 is not supported in a text: write the character itself");
  expect("{{ 0x1F }}", "4: expected a number such as 12 or 0.5: other forms are not supported");
  expect("{%+ if x %}", "3: the sign + of tags is not supported");
  expect("{% for x in y %}{% else %}{% endfor %}", "25: {% else %} of a loop is not supported");
  expect("{{ ('<'|safe).strip() }}",
         "14: strip of a text that went through the filter safe is not supported: put safe last");
  expect("{{ {}.items() }}", "1: a range or view of a dict has no text");
}

TEST(ChatTemplate, ARefusalOfTheTemplateIsAKindOfItsOwn) {
  const auto chat = ChatTemplate::of_text("a\n{{ raise_exception('Roles must\nalternate') }}", "t");
  EXPECT_THROW(chat.render({}), ChatRefused);
  EXPECT_EQ(message_of([&] { chat.render({}); }),
            "t:2:4: the template refuses this conversation: Roles must\\nalternate");
}

TEST(ChatTemplate, KeepsItsTextAsItWasGiven) {
  EXPECT_EQ(ChatTemplate::of_text("a\r\n{{ x }}\n", "t").source(), "a\r\n{{ x }}\n");
}

TEST(ChatTemplate, TheClockCanBeGiven) {
  const auto chat = ChatTemplate::of_text("{{ strftime_now('%Y') }}", "t");
  EXPECT_EQ(chat.render({}, {.now = 86400 * 366}).text, "1971");
  EXPECT_EQ(chat.render({}).text.size(), 4u);
}

TEST(ChatTemplate, MarksOfGenerationAreBytesOfTheText) {
  const auto chat = ChatTemplate::of_text("\u4F60{% generation %}\u597D{% endgeneration %}!", "t");
  EXPECT_TRUE(chat.marks_generation());
  const RenderedChat rendered = chat.render({});
  EXPECT_EQ(rendered.generated, (std::vector<ByteRange>{{3, 6}}));
  EXPECT_TRUE(rendered.generated_is_exact);
  EXPECT_FALSE(ChatTemplate::of_text("x", "t").marks_generation());
}

TEST(ChatTemplate, MarksWithinMacrosAreNotExact) {
  const auto chat =
      ChatTemplate::of_text("{% macro m() %}ab{% generation %}c{% endgeneration %}{% endmacro %}x{{ m() }}", "t");
  const RenderedChat rendered = chat.render({});
  EXPECT_EQ(rendered.text, "xabc");
  EXPECT_EQ(rendered.generated, (std::vector<ByteRange>{{1, 2}}));
  EXPECT_FALSE(rendered.generated_is_exact);
}

TEST(ChatTemplate, VariablesThatAreNoTextBecomeOne) {
  EXPECT_EQ(ChatTemplate::of_text("{{ x }}", "t").render({{"x", "a\xFF\u00E9"}}).text, "a\uFFFD\u00E9");
  EXPECT_TRUE(contains(mistake_in("", {{"x", 18446744073709551615u}}), "beyond 64 bits"));
}

TEST(ChatTemplate, SeveralThreadsUseOneTemplate) {
  const auto chat = ChatTemplate::of_text(
      "{% macro m(x) %}{{ x ~ 'b' }}{% endmacro %}{% for i in r %}{{ m('a') }}"
      "{% endfor %}",
      "t");
  const Json variables = {{"r", Json::array({1, 2, 3})}};
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) text = chat.render(variables).text;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) EXPECT_EQ(text, "ababab");
}

}  // namespace
}  // namespace tessera
