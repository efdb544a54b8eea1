#include "data/rows/row_form.h"

#include <gtest/gtest.h>

#include "support/contains.h"
#include "support/message_of.h"

namespace tessera {
namespace {

Json json(const char* text) {
  return parse_json(text, "test");
}

RowForm form_of(const char* row, const std::string& columns = "") {
  return RowForm::find({{json(row), 1}}, parse_columns(columns));
}

// The row in one text: "prompt ... completion ...".
std::string read(const char* row, const std::string& columns = "") {
  const TrainingRow read = form_of(row, columns).read(json(row));
  std::string text = read.text;
  const auto add = [&](const char* name, const Json& value) {
    if (!value.is_null()) text += (text.empty() ? "" : " ") + std::string(name) + " " + value.dump();
  };
  add("prompt", read.prompt);
  add("completion", read.completion);
  add("messages", read.messages);
  add("tools", read.tools);
  add("kwargs", read.chat_template_kwargs);
  return text;
}

// Of a row, when rows like `first` were found.
std::string broken(const char* first, const char* row) {
  const RowForm form = form_of(first);
  return message_of([&] { form.read(json(row)); });
}

TEST(RowForm, TheKindIsFoundFromTheColumns) {
  EXPECT_EQ(form_of(R"({"text": "a", "id": 1})").text(), "text rows (text)");
  EXPECT_EQ(form_of(R"({"instruction": "a", "input": "", "output": "b", "text": "ab"})").text(),
            "alpaca rows (instruction, input, output)");
  EXPECT_EQ(form_of(R"({"completion": "b", "prompt": "a", "messages": []})").text(),
            "prompt and completion rows (completion, prompt)");
  EXPECT_EQ(form_of(R"({"messages": [], "tools": "[]"})").kind(), RowKind::kMessages);
  EXPECT_EQ(form_of(R"({"id": 1, "system": "s", "conversations": []})").text(),
            "ShareGPT rows (system, conversations)");
  EXPECT_EQ(form_of(R"({"id": 1, "context": "c", "question": "q", "answers": {}})").text(),
            "SQuAD rows (context, question, answers)");
}

TEST(RowForm, ColumnsOfAllFirstRowsCountAndNullsDoNot) {
  const std::vector<PlacedRow> rows = {
      {json(R"({"instruction": "a", "output": "b"})"), 1},
      {json(R"({"instruction": "a", "input": "c", "output": "b", "messages": null})"), 2}};
  EXPECT_EQ(RowForm::find(rows).text(), "alpaca rows (instruction, output, input)");
  EXPECT_EQ(message_of([] { RowForm::find({}); }), "there is no row with a value");
}

TEST(RowForm, OtherColumnsAreRefusedWithTheKindsThereAre) {
  EXPECT_EQ(message_of([] { form_of(R"({"q": "a", "a": "b"})"); }),
            "the columns q, a are none of the kinds of rows there are (prompt and completion: prompt, completion; "
            "messages: messages; ShareGPT: conversations; alpaca: instruction, output; SQuAD: question, context, "
            "answers; text: text); name them by --columns, such as prompt=question,completion=answer");
  EXPECT_TRUE(
      contains(message_of([] { form_of(R"({"prompt": "a", "chosen": "b", "rejected": "c", "messages": []})"); }),
               "training on preferences (DPO) is not supported"));
  EXPECT_TRUE(contains(message_of([] { form_of(R"({"input_ids": [1]})"); }), "tokenised already"));
}

TEST(RowForm, ColumnsMayHaveOtherNames) {
  const char* row = R"({"question": "q", "context": "c", "answers": {}, "answer": "a", "prompt": 3})";
  EXPECT_EQ(form_of(row, "prompt=question, completion = answer").text(),
            "prompt and completion rows (prompt from question, completion from answer)");
  EXPECT_EQ(read(row, "prompt=question,completion=answer"), R"(prompt "q" completion "a")");
  EXPECT_EQ(read(R"({"instruction": "i", "output": "o", "text": "t"})", "text=text"), "t");
  EXPECT_EQ(read(R"({"input": "q", "output": "a"})", "instruction=input"),
            R"(prompt [{"role":"user","content":"q"}] completion [{"role":"assistant","content":"a"}])")
      << "input is read once";
  EXPECT_EQ(form_of(R"({"prompt": "p", "chosen": "c", "rejected": "r"})", "completion=chosen").kind(),
            RowKind::kPromptCompletion);
  EXPECT_EQ(message_of([&] { form_of(row, "prompt=qestion"); }),
            "--columns prompt=qestion: there is no column qestion in the first rows, did you mean 'question'?; they "
            "have question, context, answers, answer, prompt");
}

TEST(RowForm, ColumnsThatAreNoneAreRefused) {
  EXPECT_TRUE(parse_columns("").empty());
  EXPECT_TRUE(contains(message_of([] { parse_columns("promt=a"); }), "found 'promt', did you mean 'prompt'?"));
  EXPECT_TRUE(contains(message_of([] { parse_columns("prompt"); }), "expected NAME=COLUMN, such as prompt=question"));
  EXPECT_TRUE(contains(message_of([] { parse_columns("prompt="); }), "expected the name of a column after 'prompt='"));
  EXPECT_TRUE(contains(message_of([] { parse_columns("prompt=a,prompt=b"); }), "prompt is given twice"));
}

TEST(RowForm, AlpacaRowsBecomeMessages) {
  EXPECT_EQ(read(R"({"instruction": "Add", "input": "1 2", "output": "3"})"),
            R"(prompt [{"role":"user","content":"Add\n1 2"}] completion [{"role":"assistant","content":"3"}])");
  EXPECT_EQ(
      read(R"({"instruction": "i", "input": null, "output": "o", "system": "s", "history": [["a", "b"]]})"),
      R"(prompt [{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},)"
      R"({"role":"user","content":"i"}] completion [{"role":"assistant","content":"o"}])");
  const char* whole = R"({"instruction": "i", "input": "", "output": "o"})";
  EXPECT_EQ(read(R"({"instruction": "i", "output": ""})"),
            R"(prompt [{"role":"user","content":"i"}] completion [{"role":"assistant","content":""}])");
  EXPECT_EQ(broken(whole, R"({"instruction": "i"})"), "output: is missing");
  EXPECT_EQ(broken(whole, R"({"instruction": "", "output": "o"})"), "instruction: expected a text, found an empty one");
  EXPECT_EQ(broken(whole, R"({"output": "o"})"), "instruction: is missing");
  EXPECT_EQ(broken(whole, R"({"instruction": 3, "output": "o"})"), "instruction: expected a text, found 3");
  EXPECT_EQ(broken(whole, R"({"instruction": "i", "output": "o", "history": [["a"]]})"),
            R"(history: expected turns such as ["question", "answer"], found ["a"])");
}

TEST(RowForm, PromptAndCompletionAreTextsOrMessages) {
  EXPECT_EQ(read(R"({"prompt": "", "completion": "c"})"), R"(prompt "" completion "c")");
  const char* chat =
      R"({"prompt": [{"role": "user", "content": "p"}], "completion": [{"role": "assistant", "content": "c"}]})";
  EXPECT_EQ(read(chat), R"(prompt [{"role":"user","content":"p"}] completion [{"role":"assistant","content":"c"}])");
  EXPECT_EQ(broken(chat, R"({"prompt": "p", "completion": []})"),
            "completion: expected a text, as prompt is a text, found an array");
  EXPECT_EQ(broken(chat, R"({"prompt": [], "completion": "c"})"),
            "completion: expected a list of messages, as prompt is a list of messages, found \"c\"");
  EXPECT_EQ(broken(chat, R"({"prompt": 1, "completion": "c"})"),
            "prompt: expected a text or a list of messages, found 1");
  EXPECT_EQ(broken(chat, R"({"prompt": "p", "completion": null})"), "completion: expected a value, found null");
}

TEST(RowForm, ARowOfAnotherKindIsNamedForWhatItIs) {
  const char* whole = R"({"prompt": "p", "completion": "c"})";
  EXPECT_EQ(broken(whole, R"({"instruction": "i", "output": "o"})"),
            "it is one of the alpaca rows (instruction, output) among prompt and completion rows (prompt, completion): "
            "write each kind to files of its own");
  EXPECT_EQ(broken(whole, R"({"prompt": "p", "answer": "o"})"), "completion: is missing");
}

TEST(RowForm, SquadRowsAskAboutTheirContext) {
  EXPECT_EQ(read(R"({"context": "c", "question": "q", "answers": {"text": ["a", "b"], "answer_start": [0, 1]}})"),
            R"(prompt [{"role":"user","content":"c\n\nq"}] completion [{"role":"assistant","content":"a"}])");
  const char* nested = R"({"context": "c", "question": "q", "answers": [{"text": "a"}]})";
  EXPECT_TRUE(contains(read(nested), R"("content":"a")"));
  EXPECT_EQ(broken(nested, R"({"context": "c", "question": "q", "answers": []})"),
            "answers: expected an answer, found none");
}

TEST(RowForm, ToolsAndSettingsOfTheTemplateAreKept) {
  EXPECT_EQ(
      read(
          R"({"messages": [{"role": "user", "content": "a"}], "tools": "[{\"default\": null}]", "chat_template_kwargs": {"x": 1}})"),
      R"(messages [{"role":"user","content":"a"}] tools [{"default":null}] kwargs {"x":1})");
  EXPECT_TRUE(
      contains(read(R"({"messages": [{"role": "user", "content": "a"}], "tools": [{"a": {"b": null, "c": 1}}]})"),
               R"(tools [{"a":{"c":1}}])"));
  const char* row = R"({"messages": [], "tools": []})";
  EXPECT_EQ(broken(row, R"({"messages": [{"role": "user", "content": "a"}], "tools": "{"})"),
            "tools: its text is not JSON, at 1:2: expected a key in double quotes or '}', found the end of the text");
  EXPECT_EQ(broken(row, R"({"messages": [{"role": "user", "content": "a"}], "tools": 3})"),
            "tools: expected a list of tools, found 3");
  EXPECT_EQ(broken(row, R"({"messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": []})"),
            "chat_template_kwargs: expected an object, found an array");
}

}  // namespace
}  // namespace tessera
