#include "data/rows/row_messages.h"

#include <gtest/gtest.h>

#include "support/message_of.h"

namespace tessera {
namespace {

std::string as_read(const char* turns) {
  return read_messages(parse_json(turns, "test"), "turns").dump();
}

std::string refusal(const char* turns) {
  return message_of([&] { as_read(turns); });
}

TEST(RowMessages, ShareGptSpellsRolesInItsOwnWay) {
  EXPECT_EQ(as_read(
                R"([{"from": "system", "value": "s"}, {"from": "human", "value": "a"}, {"from": "gpt", "value": "b"},
                     {"from": "user", "value": "c"}, {"from": "assistant", "value": "d"}, {"from": "observation", "value": "e"}])"),
            R"([{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},)"
            R"({"role":"user","content":"c"},{"role":"assistant","content":"d"},{"role":"tool","content":"e"}])");
  EXPECT_EQ(as_read(R"([{"from": "human", "value": "a"}, {"from": "chatgpt", "value": "b"}])"),
            R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"}])");
  EXPECT_EQ(refusal(R"([{"from": "bot", "value": "a"}])"),
            "turns[0].from: expected one of human, user, gpt, assistant, chatgpt, bing, bard, system, function_call, "
            "observation, tool, "
            "found \"bot\"");
  EXPECT_EQ(refusal(R"([{"from": "human", "value": null}])"), "turns[0].value: expected a text, found null");
  EXPECT_EQ(refusal(R"([{"from": "human"}])"), "turns[0].value: is missing");
}

TEST(RowMessages, CallsOfFunctionsInShareGptBecomeToolCalls) {
  EXPECT_EQ(as_read(R"([{"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"x\": 1}}"}])"),
            R"([{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":{"x":1}}}]}])");
  EXPECT_EQ(
      as_read(R"([{"from": "function_call", "value": "[{\"name\": \"f\"}, {\"name\": \"g\"}]"}])"),
      R"([{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}]}])");
  EXPECT_EQ(refusal(R"([{"from": "function_call", "value": "call f"}])"),
            "turns[0].value: its text is not JSON, at 1:1: expected a value, found 'call'");
  EXPECT_EQ(refusal(R"([{"from": "function_call", "value": "[3]"}])"),
            "turns[0].value: expected a call such as {\"name\": \"weather\", \"arguments\": {...}}, found 3");
  EXPECT_EQ(refusal(R"([{"from": "function_call", "value": "[]"}])"),
            "turns[0].value: expected a call of a function, found none");
  EXPECT_EQ(refusal(R"([{"from": "function_call", "value": "3"}])"),
            "turns[0].value: expected a call such as {\"name\": \"weather\", \"arguments\": {...}}, found 3");
}

TEST(RowMessages, ContentsStayAsTheyAreAndOtherNullsGo) {
  EXPECT_EQ(as_read(R"([{"role": "user", "content": [{"type": "text", "text": "a"}], "name": null},
                     {"content": null, "role": "assistant", "tool_calls": [{"function": {"arguments": {"a": 1, "b": null}}}]}])"),
            R"([{"role":"user","content":[{"type":"text","text":"a"}]},)"
            R"({"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":{"a":1}}}]}])");
}

TEST(RowMessages, BrokenTurnsAreNamed) {
  EXPECT_EQ(refusal("[]"), "turns: expected at least one turn, found none");
  EXPECT_EQ(refusal("{}"), "turns: expected a list of turns, found an object");
  EXPECT_EQ(refusal("[3]"), "turns[0]: expected an object, found 3");
  EXPECT_EQ(refusal(R"([{"content": "a"}])"), "turns[0].role: is missing");
  EXPECT_EQ(refusal(R"([{"role": "user"}])"), "turns[0].content: is missing");
  EXPECT_EQ(refusal(R"([{"role": "user", "content": 3}])"),
            "turns[0].content: expected a text, a list or null, found 3");
  EXPECT_EQ(refusal(R"([{"role": "assistant", "content": "", "tool_calls": "f"}])"),
            "turns[0].tool_calls: expected a list, found \"f\"");
  EXPECT_EQ(refusal(R"([{"role": "user", "content": "a"}, {"role": "asistant", "content": "b"}])"),
            "turns[1].role: expected one of system, developer, user, assistant, tool, function, observation, ipython, "
            "found \"asistant\", did you mean 'assistant'?");
}

TEST(RowMessages, ASystemTextComesFirstUnlessThereIsOne) {
  Json messages = Json::array({message("user", "a")});
  add_system_text(messages, "");
  EXPECT_EQ(messages.size(), 1U);
  add_system_text(messages, "s");
  add_system_text(messages, "t");
  EXPECT_EQ(messages.dump(), R"([{"role":"system","content":"s"},{"role":"user","content":"a"}])");
}

}  // namespace
}  // namespace tessera
