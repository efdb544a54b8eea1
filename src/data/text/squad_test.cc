#include "data/text/squad.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/file.h"
#include "support/message_of.h"
#include "support/squad_sample.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

// The message for `text`, without the name it was given.
std::string mistake(const std::string& text) {
  const std::string message = message_of([&] { parse_squad(text, "x"); });
  return message.starts_with("x:") ? message.substr(2) : message;
}

TEST(Squad, SquadJsonAndJsonLinesOfDatasetsHoldTheSameRows) {
  const SquadFile json = read_squad(squad_sample("sample-v1.1.json")), lines = read_squad(squad_sample("sample.jsonl"));
  EXPECT_EQ(json.form, "SQuAD JSON");
  EXPECT_EQ(json.version, "1.1");
  EXPECT_EQ(lines.form, "JSON lines");
  ASSERT_EQ(json.rows.size(), 37U);
  ASSERT_EQ(lines.rows.size(), json.rows.size());
  for (std::size_t i = 0; i < json.rows.size(); ++i) {
    const SquadRow &a = json.rows[i], &b = lines.rows[i];
    EXPECT_EQ(a.id, b.id);
    EXPECT_EQ(a.title, b.title);
    EXPECT_EQ(a.question, b.question);
    EXPECT_EQ(*a.context, *b.context);
    ASSERT_EQ(a.answers.size(), b.answers.size());
    for (std::size_t j = 0; j < a.answers.size(); ++j) {
      EXPECT_EQ(a.answers[j].text, b.answers[j].text);
      EXPECT_EQ(a.answers[j].start, b.answers[j].start);
    }
  }
  EXPECT_EQ(json.rows[0].question, "Who is the head coach of the Broncos?");
  EXPECT_EQ(json.rows[0].answers.at(0).text, "Gary Kubiak");
  EXPECT_EQ(json.rows[0].context, json.rows[1].context);    // one string for one passage
  EXPECT_EQ(lines.rows[0].context, lines.rows[1].context);  // here too
}

TEST(Squad, Version2HasQuestionsWithoutAnAnswer) {
  const SquadFile file = read_squad(squad_sample("made-v2.0.json"));
  EXPECT_EQ(file.version, "v2.0");
  ASSERT_EQ(file.rows.size(), 2U);
  EXPECT_TRUE(file.rows[0].answers.empty());  // plausible answers do not count
  EXPECT_EQ(file.rows[1].answers.at(0).text, "31 metres");
}

TEST(Squad, ReadsAnArrayOfRowsAndASingleLine) {
  const std::string row = R"({"context": "c", "question": "q", "answers": {"text": ["a"], "answer_start": [0]}})";
  EXPECT_EQ(parse_squad("[" + row + ", " + row + "]", "x").form, "a JSON array of rows");
  EXPECT_EQ(parse_squad("[" + row + ", " + row + "]", "x").rows.size(), 2U);
  EXPECT_EQ(parse_squad(row, "x").form, "JSON lines");
  EXPECT_EQ(parse_squad(row + "\n\n" + row + "\r\n", "x").rows.size(), 2U);
  EXPECT_EQ(parse_squad("\xef\xbb\xbf" + row + "\n" + row, "x").rows.size(), 2U);  // as some Windows editors begin
}

TEST(Squad, ReadsTheFilesOfRunQa) {
  const SquadFile file = parse_squad(
      R"({"version": "0.1", "data": [{"id": "a", "context": "c", "question": "q", "answers": {"text": ["c"]}}]})", "x");
  EXPECT_EQ(file.form, "a JSON array of rows");
  EXPECT_EQ(file.version, "0.1");
  ASSERT_EQ(file.rows.size(), 1U);
  EXPECT_EQ(file.rows[0].id, "a");
  EXPECT_EQ(mistake(R"({"data": [{"context": "c", "question": "q", "answers": {"text": ["c"]}}, {}]})"),
            "1:74: data[1]: \"answers\" is missing");
}

TEST(Squad, RowsOfAnArrayShareAPassageToo) {
  const std::string row = R"({"context": "c", "question": "q", "answers": []})";
  const SquadFile file = parse_squad("[" + row + "," + row + "]", "x");
  EXPECT_EQ(file.rows[0].context, file.rows[1].context);
}

TEST(Squad, LabelsMayBeNumbersOrMissing) {
  const auto row = [](const std::string& labels) {
    return parse_squad("[{" + labels + R"("context": "c", "question": "q", "answers": []}])", "x").rows[0];
  };
  EXPECT_EQ(row(R"("id": 17, "title": null, )").id, "17");
  EXPECT_EQ(row(R"("id": 17, "title": null, )").title, "");
  EXPECT_EQ(row("").id, "");
  EXPECT_EQ(mistake(R"([{"id": [], "context": "c", "question": "q", "answers": []}])"),
            "1:9: [0].id: expected a string, found an array");
}

TEST(Squad, AMistakeInTheMeaningIsToldWithLineColumnAndPath) {
  EXPECT_EQ(mistake("{\"data\": [\n  {\"paragraphs\": 7}]}"), "2:18: data[0].paragraphs: expected an array, found 7");
  EXPECT_EQ(mistake("{\"data\": [{\"paragraphs\": [{\"context\": \"\u00e9\", \"qas\": [\n {\"question\": \"q\"}]}]}]}"),
            "2:2: data[0].paragraphs[0].qas[0]: \"answers\" is missing; found question");
  EXPECT_EQ(mistake(R"({"dat": []})"), "1:1: the file: \"data\" is missing; is \"dat\" a spelling mistake?");
  EXPECT_EQ(mistake("3"), "1:1: the file: expected an object, found 3");
  EXPECT_EQ(mistake(R"({"data": [{"paragraphs": [{"context": 1, "qas": []}]}]})"),
            "1:39: data[0].paragraphs[0].context: expected a string, found 1");
  EXPECT_EQ(
      mistake(
          R"({"data":[{"paragraphs":[{"context":"c","qas":[{"question":"q","answers":[{"text":"a","answer_start":-1}]}]}]}]})"),
      "1:101: data[0].paragraphs[0].qas[0].answers[0].answer_start: expected a whole number of at least 0, found "
      "-1");
  EXPECT_EQ(mistake(R"({"data": []})"), " expected at least one question, found none");
}

TEST(Squad, InJsonLinesTheLineIsThatOfTheFile) {
  const std::string good = R"({"context": "c", "question": "q", "answers": {"text": ["a"], "answer_start": [0]}})";
  EXPECT_EQ(mistake(good + "\n\n" + R"({"context": "c", "question": 5, "answers": {"text": []}})"),
            "3:30: question: expected a string, found 5");
  EXPECT_EQ(mistake(good + "\n" + R"({"context": "c"})"), "2:1: the row: \"answers\" is missing; found context");
  EXPECT_EQ(mistake(R"({"context": "c"})"
                    "\n" +
                    good),
            "1:1: the row: \"answers\" is missing; found context");
  EXPECT_EQ(
      mistake(good + "\n" + R"({"context": "c", "question": "q", "answers": {"text": ["a"], "answer_start": []}})"),
      "2:78: answers.answer_start: expected 1 numbers, one for each text, found 0");
  EXPECT_EQ(mistake(good + "\n" + R"({"context" "c"})"), "2:12: expected ':', found \"c\"");
  EXPECT_EQ(mistake(good + "\n" + R"({"context": "c)"),
            "2:13: expected '\"' at the end of this string, found the end of the text");
}

TEST(Squad, SyntaxMistakesNameLineAndColumn) {
  EXPECT_EQ(mistake("{\"data\": [\n{,}]}"), "2:2: expected a key in double quotes or '}', found ','");
  EXPECT_EQ(mistake(""), "1:1: expected a value, found the end of the text");
  const std::string whole = R"({"data": [{"paragraphs": []}]})";
  EXPECT_EQ(mistake(whole + "\n" + whole), "2:1: expected the end of the text, found '{'");  // not JSON lines
}

TEST(Squad, RefusesFoldersOfDatasetsAndSaysHowToConvertThem) {
  const TestFolder folder;
  std::filesystem::create_directories(folder / "saved");
  write_file_atomically(folder / "saved/dataset_info.json", "{}");
  const std::string message = message_of([&] { read_squad(folder / "saved"); });
  EXPECT_NE(message.find("is a folder that `datasets` saved: Arrow files are not read"), std::string::npos) << message;
  EXPECT_NE(message.find(".to_json(\"train.jsonl\")"), std::string::npos) << message;
  EXPECT_NE(message_of([&] { read_squad(folder.path()); }).find("is a folder: expected a SQuAD file"),
            std::string::npos);
  EXPECT_NE(message_of([&] { read_squad(folder / "x.arrow"); }).find("to_json"), std::string::npos);
  EXPECT_NE(message_of([&] { read_squad(folder / "x.parquet"); }).find("to_json"), std::string::npos);
  EXPECT_NE(message_of([&] { read_squad(folder / "none.json"); }).find("No such file"), std::string::npos);
}

TEST(Squad, RefusesCompressedFilesByName) {
  const TestFolder folder;
  write_file_atomically(folder / "x.json.gz", "\x1f\x8b\x08...");
  EXPECT_NE(message_of([&] { read_squad(folder / "x.json.gz"); }).find("x.json.gz is compressed with gzip"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
