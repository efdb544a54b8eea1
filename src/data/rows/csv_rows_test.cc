#include <gtest/gtest.h>

#include "support/all_rows.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

class CsvRows : public testing::Test {
 protected:
  std::string rows(const std::string& name, const std::string& text) const {
    return RowsOfText::shown(RowsOfText{folder_.path()}(name, text));
  }
  std::string mistake(const std::string& name, const std::string& text) const {
    const std::string message = message_of([&] { rows(name, text); });
    const std::string folder = folder_.path().string() + "/";
    return message.starts_with(folder) ? message.substr(folder.size()) : message;
  }

  const TestFolder folder_;
};

TEST_F(CsvRows, ARowWithAnotherNumberOfFieldsIsNamedByItsLine) {
  EXPECT_EQ(mistake("a.csv", "a,b\n\"x\ny\",2\n3\n"),
            "a.csv:4: expected 2 fields, as in the file's first row, found 1");
  EXPECT_EQ(mistake("a.csv", "a,b\n1,2,\n"), "a.csv:2: expected 2 fields, as in the file's first row, found 3");
}

TEST_F(CsvRows, QuotesThatDoNotMatchAreNamedByTheirLine) {
  EXPECT_EQ(mistake("a.csv", "a,b\n1,2\n3,\"x\ny\n"),
            "a.csv:3: a row begins in this line whose quoted field has no closing quote");
  EXPECT_EQ(mistake("a.csv", "a,b\n\"x\" y,2\n"),
            "a.csv:2: expected the end of the field after its closing quote; a quote within a field is written twice");
  EXPECT_EQ(mistake("a.csv", "a,b\nx\ry,2\n"),
            "a.csv:2: a carriage return stands alone: expected it before a line feed, or within quotes");
}

TEST_F(CsvRows, ColumnsHaveNamesOfTheirOwn) {
  EXPECT_EQ(mistake("a.csv", ",text\n0,x\n"),
            "a.csv:1: column 1 of the first row has no name; pandas writes such a column unless to_csv() has "
            "index=False");
  EXPECT_EQ(mistake("a.csv", "a,b,a\n"), "a.csv:1: column 3 of the first row: a column before it is called a, too");
  EXPECT_EQ(mistake("a.csv", ""), "a.csv: expected a first row with the columns' names, found none");
  EXPECT_EQ(rows("a.csv", "a,b\n"), "");
  EXPECT_EQ(rows("a.csv", "\r\n\na\n1\n"), "4 {\"a\":\"1\"}\n");
}

TEST_F(CsvRows, TextThatIsNotUtf8IsNamedByItsLine) {
  EXPECT_EQ(mistake("a.csv", "a\nx\n\xe9t\xe9\n"), "a.csv:3: expected text in UTF-8, found the byte 0xe9");
  EXPECT_EQ(mistake("a.csv",
                    "\xff"
                    "a\n"),
            "a.csv:1: expected text in UTF-8, found the byte 0xff");
  EXPECT_EQ(mistake("a.txt", "x\n\xc3"), "a.txt:2: expected text in UTF-8, found the byte 0xc3");
  EXPECT_EQ(mistake("a.txt", std::string("x\n\0y", 4)), "a.txt:2: expected text in UTF-8, found the byte 0x00");
}

}  // namespace
}  // namespace tessera
