#include "data/rows/row_stream.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <future>

#include "core/file.h"
#include "support/all_rows.h"
#include "support/contains.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class RowStreamTest : public testing::Test {
 protected:
  std::string rows(const std::string& name, const std::string& text, const RowCutting& cutting = {}) const {
    return RowsOfText::shown(RowsOfText{folder_.path()}(name, text, cutting));
  }
  // Without the folder's name.
  std::string mistake(const std::string& name, const std::string& text, const RowCutting& cutting = {}) const {
    const std::string message = message_of([&] { rows(name, text, cutting); });
    const std::size_t at = message.find(folder_.path().string() + "/");
    return at == 0 ? message.substr(folder_.path().string().size() + 1) : message;
  }

  const TestFolder folder_;
};

struct RowSample {
  const char* name;
  std::string text, rows;
};

const std::vector<RowSample>& row_samples() {
  static const std::vector<RowSample> samples = {
      {"lines.jsonl", "{\"a\": 1}\n\n{\"a\": \"x\\n\"}\r\n  \n{\"a\": null}",
       "1 {\"a\":1}\n3 {\"a\":\"x\\n\"}\n5 {\"a\":null}\n"},
      {"lines.json", "{\"a\": [{}]}\n{\"b\": [{}]}\n", "1 {\"a\":[{}]}\n2 {\"b\":[{}]}\n"},
      {"array.json", "[{\"a\": \"}]\\\"\\\\\"},\n {\"b\": [1, {}]} ,{\n\"c\": \"\xc3\xa9\"}\n]\n",
       "1 {\"a\":\"}]\\\"\\\\\"}\n2 {\"b\":[1,{}]}\n2 {\"c\":\"\xc3\xa9\"}\n"},
      {"object.json",
       "{\"version\": \"1\", \"tags\": [1],\n\"data\": [ {\"a\": 1},\n{\"a\": 2} ],\n \"more\": {\"x\": [{}]}}",
       "2 {\"a\":1}\n3 {\"a\":2}\n"},
      {"one.json", "{\n\"messages\": [{\"role\": \"user\"}],\n\"tools\": []\n}\n",
       "1 {\"messages\":[{\"role\":\"user\"}],\"tools\":[]}\n"},
      {"none.json", " [ ]\n", ""},
      {"table.csv", "a,\"b \"\"c\"\"\"\r\n1,\"x,\ny\"\"\"\r\n\r\n5\" disk,\"\"\r\n,last",
       "2 {\"a\":\"1\",\"b \\\"c\\\"\":\"x,\\ny\\\"\"}\n5 {\"a\":\"5\\\" disk\",\"b \\\"c\\\"\":\"\"}\n6 "
       "{\"a\":\"\",\"b \\\"c\\\"\":\"last\"}\n"},
      {"table.tsv", "a\tb\n1\t\"2\t3\"\n", "2 {\"a\":\"1\",\"b\":\"2\\t3\"}\n"},
      {"text.txt", "one\r\n\n\xc3\xa9t\xc3\xa9\nlast",
       "1 {\"text\":\"one\"}\n2 {\"text\":\"\"}\n3 {\"text\":\"\xc3\xa9t\xc3\xa9\"}\n4 {\"text\":\"last\"}\n"}};
  return samples;
}

TEST_F(RowStreamTest, ReadsEveryFormat) {
  for (const RowSample& sample : row_samples()) {
    EXPECT_EQ(rows(sample.name, sample.text), sample.rows) << sample.name;
    EXPECT_EQ(rows(sample.name, "\xef\xbb\xbf" + sample.text), sample.rows) << sample.name << " after a mark";
  }
}

TEST_F(RowStreamTest, ATextMayBeOneRow) {
  write_file_atomically(folder_ / "text.txt", "one\r\n\ntwo\nthree");
  EXPECT_EQ(RowsOfText::shown(RowsOfText::of({folder_ / "text.txt"}, {.text = RowCutting::Text::kWhole})),
            "1 {\"text\":\"one\\n\\ntwo\\nthree\"}\n");
  EXPECT_EQ(
      RowsOfText::shown(RowsOfText::of({folder_ / "text.txt"}, {.block_bytes = 6, .text = RowCutting::Text::kWhole})),
      "1 {\"text\":\"one\\n\\n\"}\n3 {\"text\":\"two\\nthree\"}\n");
  EXPECT_EQ(RowsOfText::shown(RowsOfText::of({folder_ / "text.txt"}, {.text = RowCutting::Text::kLineWithEnd})),
            "1 {\"text\":\"one\\n\"}\n2 {\"text\":\"\\n\"}\n3 {\"text\":\"two\\n\"}\n4 {\"text\":\"three\"}\n");
}

TEST_F(RowStreamTest, ReadsEveryFormatThatGzipPacked) {
  for (const RowSample& sample : row_samples()) {
    const fs::path file = folder_ / (std::string(sample.name) + ".gz");
    write_gzip_file(file, sample.text);
    EXPECT_EQ(RowsOfText::shown(RowsOfText::of({file})), sample.rows) << sample.name;
  }
}

TEST_F(RowStreamTest, RowsDoNotDependOnWhereBlocksAndPiecesEnd) {
  for (const RowSample& sample : row_samples()) {
    write_file_atomically(folder_ / sample.name, sample.text);
    for (std::size_t block = 1; block <= sample.text.size() + 1; ++block) {
      for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{7}, block}) {
        ASSERT_EQ(RowsOfText::shown(RowsOfText::of({folder_ / sample.name}, {block, piece})), sample.rows)
            << sample.name << ": blocks of " << block << ", pieces of " << piece;
      }
    }
  }
}

TEST_F(RowStreamTest, BlocksDoNotDependOnPieces) {
  for (const RowSample& sample : row_samples()) {
    write_file_atomically(folder_ / sample.name, sample.text);
    std::vector<std::string> first;
    for (const std::size_t piece : {1, 3, 1000}) {
      const auto stream = open_rows({folder_ / sample.name}, {12, piece});
      std::vector<std::string> blocks;
      while (const auto block = stream->next()) {
        EXPECT_EQ(block->number, std::ssize(blocks));
        blocks.push_back(fmt::format("{}:{}:{}", block->first_row, block->first_line, block->bytes));
      }
      if (first.empty()) first = blocks;
      EXPECT_EQ(blocks, first) << sample.name;
    }
  }
}

TEST_F(RowStreamTest, SeveralFilesAreOneStream) {
  write_file_atomically(folder_ / "a.jsonl", "{\"a\": 1}\n{\"a\": 2}\n");
  write_file_atomically(folder_ / "b.csv", "a\n3\n");
  write_file_atomically(folder_ / "empty.jsonl", "");
  const auto stream = open_rows({folder_ / "a.jsonl", folder_ / "empty.jsonl", folder_ / "b.csv"}, {1, 4});
  EXPECT_EQ(stream->num_bytes(), 22);
  std::vector<std::string> found;
  std::int64_t num_bytes_done = 0;
  while (const auto block = stream->next()) {
    EXPECT_GE(stream->num_bytes_done(), num_bytes_done);
    num_bytes_done = stream->num_bytes_done();
    const auto rows = stream->parse(*block);
    ASSERT_EQ(rows.size(), 1U);
    found.push_back(fmt::format("{} {} {}", block->number, block->first_row,
                                fs::path(stream->place_of(*block, rows[0])).filename().string()));
  }
  EXPECT_EQ(found, (std::vector<std::string>{"0 0 a.jsonl:1", "1 1 a.jsonl:2", "2 0 b.csv:2"}));
  EXPECT_EQ(stream->num_bytes_done(), 22);
}

TEST_F(RowStreamTest, ParsesABlockOfAnotherStreamInAnyThread) {
  write_file_atomically(folder_ / "a.csv", "a,b\n1,2\n3,4\n");
  const auto reader = open_rows({folder_ / "a.csv"}, {1, 4});
  const auto first = reader->next(), second = reader->next();
  const auto stream = open_rows({folder_ / "a.csv"});
  auto later = std::async(std::launch::async, [&] { return stream->parse(*second); });
  EXPECT_EQ(RowsOfText::shown(stream->parse(*first)), "2 {\"a\":\"1\",\"b\":\"2\"}\n");
  EXPECT_EQ(RowsOfText::shown(later.get()), "3 {\"a\":\"3\",\"b\":\"4\"}\n");
}

TEST_F(RowStreamTest, AFileThatGzipPackedAndIsCutOffIsRefused) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += fmt::format("{{\"a\": {}}}\n", i * 7919 % 10'007);
  write_gzip_file(folder_ / "a.jsonl.gz", text);
  const std::string packed = read_file(folder_ / "a.jsonl.gz");
  for (const std::size_t size :
       {packed.size() - 1, packed.size() - 9, packed.size() / 2, std::size_t{12}, std::size_t{5}}) {
    EXPECT_EQ(mistake("cut.jsonl.gz", packed.substr(0, size)),
              "cut.jsonl.gz: the file is cut off: its gzip data ends too early")
        << size;
  }
  std::string damaged = packed;
  damaged[packed.size() - 6] ^= 1;  // of the checksum
  EXPECT_TRUE(mistake("damaged.jsonl.gz", damaged).starts_with("damaged.jsonl.gz: the gzip data is damaged"));
}

// 100 MB in blocks: never more than one block and a piece is held.
TEST_F(RowStreamTest, ALargeFileComesInBlocksOfBoundedSize) {
  constexpr std::int64_t kNumRows = 100'000;
  const std::string filling(1000, 'x');
  {
    OutputFile file(folder_ / "large.jsonl");
    for (std::int64_t i = 0; i < kNumRows; ++i)
      file.write(fmt::format("{{\"i\": {}, \"text\": \"{}\"}}\n", i, filling));
    file.become_target();
  }
  const auto stream = open_rows({folder_ / "large.jsonl"});
  EXPECT_GT(stream->num_bytes(), 100'000'000);
  std::int64_t num_rows = 0, num_bytes = 0;
  while (const auto block = stream->next()) {
    EXPECT_EQ(block->first_row, num_rows);
    EXPECT_EQ(block->first_line, num_rows + 1);
    EXPECT_LT(block->bytes.size(), (std::size_t{4} << 20) + 1100);
    num_rows += std::count(block->bytes.begin(), block->bytes.end(), '\n');
    num_bytes += std::ssize(block->bytes);
    EXPECT_EQ(stream->num_bytes_done(), num_bytes);
  }
  EXPECT_EQ(num_rows, kNumRows);
  EXPECT_EQ(num_bytes, stream->num_bytes());
}

TEST_F(RowStreamTest, ARowThatIsTooLargeIsRefusedByItsLine) {
  const std::string long_text(300, 'x');
  const RowCutting small{20, 10, 100};
  EXPECT_EQ(mistake("a.jsonl", "{\"a\": 1}\n{\"a\": \"" + long_text + "\"}\n", small),
            "a.jsonl:2: the row that begins here is larger than 100");
  EXPECT_EQ(mistake("a.csv", "a\n1\n\"" + long_text + "\"\n", small),
            "a.csv:3: the row that begins here is larger than 100");
  EXPECT_EQ(mistake("a.json", "[{\"a\": 1},\n{\"a\": \"" + long_text + "\"}]", small),
            "a.json:1: the row that begins here is larger than 100");
}

TEST_F(RowStreamTest, RefusesWhatIsNoFileOfRows) {
  for (const char* name : {"a.jsonl", "a.json", "a.csv", "a.txt"}) {
    EXPECT_EQ(mistake(name, "\xff\xfez"),
              std::string(name) + ": expected UTF-8, found UTF-16: convert it, as by iconv -f UTF-16 -t UTF-8");
  }
  EXPECT_EQ(mistake("a.xml", "<a/>"),
            "a.xml: expected a file that ends in one of .json, .jsonl, .ndjson, .csv, .tsv, "
            ".txt (each also .gz), .parquet and .arrow");
  EXPECT_TRUE(contains(mistake("a.parquet", "PAR1"), "a.parquet: "));
  EXPECT_TRUE(contains(message_of([&] { open_rows({folder_ / "gone.json"}); }), "gone.json: there is no such file"));
  fs::create_directory(folder_ / "folder.json");
  EXPECT_TRUE(contains(message_of([&] { open_rows({folder_ / "folder.json"}); }), "it is not a regular file"));
}

}  // namespace
}  // namespace tessera
