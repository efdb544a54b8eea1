#include <gtest/gtest.h>

#include "support/all_rows.h"
#include "support/contains.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

class JsonRows : public testing::Test {
 protected:
  std::string rows(const std::string& name, const std::string& text) const {
    return RowsOfText::shown(RowsOfText{folder_.path()}(name, text));
  }
  // The message without the folder's name.
  std::string mistake(const std::string& name, const std::string& text) const {
    const std::string message = message_of([&] { rows(name, text); });
    const std::string folder = folder_.path().string() + "/";
    return message.starts_with(folder) ? message.substr(folder.size()) : message;
  }

  const TestFolder folder_;
};

TEST_F(JsonRows, ABrokenLineIsNamedByItsPlace) {
  EXPECT_EQ(mistake("a.jsonl", "{\"a\": 1}\n\n{\"a\": }\n"), "a.jsonl:3:7: expected a value, found '}'");
  EXPECT_EQ(mistake("a.jsonl", "{\"a\": 1}\n{\"a\": \"x\n"),
            "a.jsonl:2:7: expected '\"' at the end of this string, "
            "found the end of the text");
  EXPECT_EQ(mistake("a.jsonl", "{}\n[1]\n"),
            "a.jsonl:2: expected a row, which is an object such as {\"text\": \"...\"}, found an array");
  EXPECT_EQ(mistake("a.jsonl", "{\"a\": 1, \"a\": 2}"), "a.jsonl:1:10: the key \"a\" appears twice in one object");
  EXPECT_EQ(mistake("a.jsonl", "{\"a\": \"\xff\"}"), "a.jsonl:1:8: expected UTF-8, found the byte 0xff");
  EXPECT_EQ(mistake("a.jsonl", "{\"a\": 1} {\"a\": 2}"), "a.jsonl:1:10: expected the end of the text, found '{'");
}

TEST_F(JsonRows, NumbersThatJsonLacksAreRefused) {
  for (const char* word : {"NaN", "Infinity", "-Infinity"}) {
    EXPECT_EQ(mistake("a.jsonl", "{}\n{\"a\": " + std::string(word) + "}"),
              "a.jsonl:2:7: expected a value, found '" + std::string(word) +
                  "', which JSON does not have: write null or a number");
  }
}

TEST_F(JsonRows, ABrokenArrayIsNamedByItsPlace) {
  EXPECT_EQ(mistake("a.json", "[{\"a\": 1},\n  {\"\xc3\xa9\": 1}, {\"a\": x}]"),
            "a.json:2:19: expected a value, found 'x'");
  EXPECT_EQ(mistake("a.json", "[{\"a\": 1},\n3]"), "a.json:2: expected a row, which is an object, found 3]");
  EXPECT_EQ(mistake("a.json", "[{\"a\": 1},\n]"), "a.json:2: expected a row, which is an object, found ]");
  EXPECT_EQ(mistake("a.json", "[{\"a\": 1}\n{}]"), "a.json:2: expected ',' or ']' after the row, found {");
  EXPECT_EQ(mistake("a.json", "[{\"a\": 1},\n\n {\"a\": 2"), "a.json:3: the file ends within the row that begins here");
  EXPECT_EQ(mistake("a.json", "[{\"a\": 1},\n"), "a.json:2: the file ends within its array of rows");
  EXPECT_EQ(mistake("a.json", "["), "a.json:1: the file ends within its array of rows");
  EXPECT_EQ(mistake("a.json", "[{\"a\": 1}"), "a.json:1: expected ',' or ']' after the row, found the end of the file");
  EXPECT_EQ(mistake("a.json", "[{\"a\": 1}]\n []"),
            "a.json:2: expected the end of the file after its rows, found more");
  EXPECT_EQ(mistake("a.json", "[{\"a\": [1}]\n"),
            "a.json:2: expected ',' or ']' after the row, found the end of the file");
}

TEST_F(JsonRows, WhatIsAroundAnArrayIsCheckedToo) {
  EXPECT_EQ(mistake("a.json", "{\"data\": [{\"a\": 1},\n{}], oops}"),
            "a.json:2:4: expected a key in double quotes, found 'oops'");
  EXPECT_EQ(mistake("a.json", "{\"data\": [{\"a\": 1}]"),
            "a.json:1:12: expected ',' or '}', found the end of the text");
  EXPECT_EQ(mistake("a.json", "{\"train\": [{}],\n\"test\": [{}]}"),
            "a.json: expected one array of rows in its object, found 2: train, test; write each to a file of its own");
  EXPECT_EQ(mistake("a.json", "{\n\"a\": 1\n}\n{\n\"a\": 2\n}"),
            "a.json:4: expected the end of the file after its object, found more; rows one after the other must have "
            "one line each, or stand in an array");
  EXPECT_EQ(mistake("a.json", " \n"), "a.json: expected rows, found an empty file");
  EXPECT_EQ(mistake("a.json", "3"),
            "a.json:1: expected a row, which is an object such as {\"text\": \"...\"}, found 3");
}

TEST_F(JsonRows, LinesMayHoldAnArrayWhateverTheEndingSays) {
  EXPECT_EQ(rows("a.jsonl", "\n[{\"a\": 1}]"), "2 {\"a\":1}\n");
  EXPECT_EQ(rows("a.jsonl", " \n\n"), "");
}

TEST_F(JsonRows, ASquadFileHasOneRowPerQuestion) {
  const std::string text =
      R"({"version": "1.1", "data": [{"title": "T", "paragraphs": [
          {"context": "c", "qas": [{"id": "1", "question": "q", "answers": [{"text": "a", "answer_start": 0}]},
                                   {"id": 2, "question": "r", "answers": []}]}]},
          {"title": "U", "paragraphs": []}]})";
  EXPECT_EQ(rows("train.json", text),
            R"(1 {"id":"1","title":"T","context":"c","question":"q","answers":[{"text":"a","answer_start":0}]})"
            "\n"
            R"(1 {"id":"2","title":"T","context":"c","question":"r","answers":[]})"
            "\n"
            R"(4 {"title":"U","paragraphs":[]})"
            "\n");
  EXPECT_EQ(mistake("train.json", R"([{"paragraphs": [{"context": 3, "qas": []}]}])"),
            "train.json:1: paragraphs[0].context: expected a string, found 3");
}

}  // namespace
}  // namespace tessera
