// The files are of tools/references/tables.py: NAME.* holds the rows of NAME.jsonl.
#include "data/rows/table_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/text.h"
#include "data/rows/arrow_support.h"
#include "support/contains.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class TableFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (arrow_support() == nullptr) GTEST_SKIP() << no_arrow_reason();
  }

  static fs::path folder() { return fs::path(TESSERA_TEST_DATA_FOLDER) / "tables"; }

  static std::vector<fs::path> files(const std::string& start) {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder())) {
      const fs::path& path = entry.path();
      if (path.filename().string().starts_with(start) &&
          (path.extension() == ".arrow" || path.extension() == ".parquet"))
        found.push_back(path);
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines = split(text, '\n');
    lines.pop_back();  // behind the last line feed
    return lines;
  }
  // Written by us, so that 1 and 1.0 differ and the order of keys counts.
  static std::vector<std::string> rows_of(const std::string& text) {
    std::vector<std::string> rows = lines_of(text);
    for (std::string& row : rows) row = parse_json(row, "row").dump();
    return rows;
  }
  static std::string all_lines(const TableFile& table) { return table.read_json_lines(0, table.num_rows()); }

  static std::string refusal(const std::string& name, const std::vector<std::string>& columns = {}) {
    return message_of([&] { all_lines(*open_table_file(folder() / "refused" / name, columns)); });
  }
};

using TableFileFormats = TableFileTest;
using TableFileRanges = TableFileTest;
using TableFileRefusals = TableFileTest;
using DamagedTableFile = TableFileTest;

TEST_F(TableFileFormats, EachHoldsTheRowsOfTheJsonLinesBesideIt) {
  int num_files = 0;
  for (const fs::path& path : files("")) {
    const std::string name = split(path.filename().string(), '.').front();
    const auto table = open_table_file(path);
    const std::vector<std::string> expected = rows_of(read_file(folder() / (name + ".jsonl")));
    ASSERT_EQ(table->num_rows(), static_cast<std::int64_t>(expected.size())) << path;
    const std::vector<std::string> rows = rows_of(all_lines(*table));
    ASSERT_EQ(rows.size(), expected.size()) << path;
    for (std::size_t row = 0; row < rows.size(); ++row) EXPECT_EQ(rows[row], expected[row]) << path << " " << row;
    EXPECT_EQ(table->left_out_columns(), std::vector<std::string>{}) << path;
    ++num_files;
  }
  EXPECT_EQ(num_files, 19);
}

TEST_F(TableFileFormats, AnEmptyTableHasNoRows) {
  const auto table = open_table_file(folder() / "refused/none.stream.arrow");
  EXPECT_EQ(table->num_rows(), 0);
  EXPECT_EQ(table->columns(), std::vector<std::string>{"text"});
  EXPECT_EQ(all_lines(*table), "");
}

TEST_F(TableFileRanges, EachCanBeReadAloneAndInAnyOrder) {
  const std::vector<std::string> expected = rows_of(read_file(folder() / "chats.jsonl"));
  for (const fs::path& path : files("chats")) {
    const auto table = open_table_file(path);
    for (std::int64_t end = table->num_rows(); end > 0; end -= 3) {  // backwards, across borders of row groups
      const std::int64_t begin = std::max<std::int64_t>(end - 7, 0);
      const std::vector<std::string> rows = rows_of(table->read_json_lines(begin, end));
      EXPECT_EQ(rows, std::vector<std::string>(expected.begin() + begin, expected.begin() + end))
          << path << " " << begin;
    }
    EXPECT_EQ(table->read_json_lines(5, 5), "");
    EXPECT_TRUE(contains(message_of([&] { table->read_json_lines(39, 41); }), "rows 39 to 41 were asked for, of 40"));
  }
}

TEST_F(TableFileRanges, BlocksCoverTheRowsAndEndWhereRowGroupsDo) {
  for (const fs::path& path : files("chats")) {
    const auto table = open_table_file(path);
    std::vector<std::int64_t> ends;
    for (std::int64_t row = 0; row < table->num_rows(); row = ends.back()) {
      ends.push_back(table->block_end(row, 4 << 20));
      ASSERT_GT(ends.back(), row) << path;
    }
    const bool is_parquet = path.extension() == ".parquet";
    EXPECT_EQ(ends, is_parquet ? (std::vector<std::int64_t>{15, 30, 40}) : std::vector<std::int64_t>{40}) << path;
    for (std::int64_t row = 0; row < table->num_rows();) {  // blocks smaller than any row
      const std::int64_t end = table->block_end(row, 1);
      ASSERT_GT(end, row) << path;
      ASSERT_LE(end, table->num_rows()) << path;
      row = end;
    }
  }
}

TEST_F(TableFileRanges, ThreadsMayTakeTurns) {
  const std::vector<std::string> expected = rows_of(read_file(folder() / "chats.jsonl"));
  for (const fs::path& path : files("chats")) {
    const auto table = open_table_file(path);
    std::vector<std::string> rows(40);
    std::vector<std::jthread> threads;
    for (std::int64_t thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        for (std::int64_t row = thread; row < 40; row += 4)
          rows[static_cast<std::size_t>(row)] = table->read_json_lines(row, row + 1);
      });
    }
    threads.clear();
    for (std::size_t row = 0; row < rows.size(); ++row) EXPECT_EQ(rows_of(rows[row]).at(0), expected[row]) << path;
  }
}

TEST_F(TableFileRanges, OnlyTheNamedColumnsAreRead) {
  for (const fs::path& path : files("chats")) {
    const auto table = open_table_file(path, {"source", "id"});
    EXPECT_EQ(table->columns(), (std::vector<std::string>{"id", "source"})) << path;
    EXPECT_EQ(table->read_json_lines(1, 3), "{\"id\":1,\"source\":\"book\"}\n{\"id\":2,\"source\":null}\n") << path;
    EXPECT_TRUE(contains(message_of([&] { open_table_file(path, {"text"}); }),
                         "there is no column text; there are id, messages, source, score, good, meta"));
  }
}

TEST_F(TableFileRefusals, NameRowAndColumn) {
  EXPECT_TRUE(contains(refusal("nan.parquet"), "nan.parquet: row 2 (from 0): column score holds NaN"));
  EXPECT_TRUE(contains(refusal("latin1.arrow"), "row 1 (from 0): column text holds text that is not UTF-8"));
  EXPECT_TRUE(contains(refusal("years.arrow"), "row 1 (from 0): column when holds a date outside the years"));
  EXPECT_TRUE(contains(refusal("json.arrow"), "row 1 (from 0): column tools holds a text that is not JSON"));
  EXPECT_TRUE(contains(refusal("twice.arrow"), "there are two columns a"));
}

TEST_F(TableFileRefusals, ColumnsWithoutAFormInJsonAreLeftOutUnlessTheyAreNamed) {
  const auto table = open_table_file(folder() / "refused/pictures.parquet");
  EXPECT_EQ(all_lines(*table), "{\"caption\":\"a dot\"}\n");
  ASSERT_EQ(table->left_out_columns().size(), 1u);
  EXPECT_TRUE(contains(table->left_out_columns().front(), "image (struct<bytes: binary"));
  EXPECT_TRUE(contains(refusal("pictures.parquet", {"image"}), "column image (struct<bytes: binary"));
  EXPECT_TRUE(contains(refusal("only_pictures.parquet"), "no column that can be read, only image"));
}

TEST_F(TableFileRefusals, OtherFilesAreNamedForWhatTheyAre) {
  const TestFolder other;
  write_file_atomically(other / "a.parquet", "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_TRUE(contains(message_of([&] { open_table_file(other / "a.parquet"); }), "git lfs pull"));
  write_file_atomically(other / "b.parquet", "{\"text\":1}\n");
  EXPECT_TRUE(contains(message_of([&] { open_table_file(other / "b.parquet"); }),
                       "b.parquet: it does not begin as Parquet or Arrow files do"));
  EXPECT_TRUE(contains(message_of([&] { open_table_file(other / "none.arrow"); }), "none.arrow"));
}

// Rows, or a UsageError that begins with the file's name; nothing else.
std::string read_damaged(const fs::path& path) {
  try {
    const auto table = open_table_file(path);
    return table->num_rows() > 1'000'000 ? "" : table->read_json_lines(0, table->num_rows());
  } catch (const UsageError& refused) {
    EXPECT_TRUE(std::string(refused.what()).starts_with(path.string())) << refused.what();
    EXPECT_EQ(std::string(refused.what()).find('\n'), std::string::npos) << refused.what();
    return "";
  }
}

// Of large files, some bytes will do.
std::size_t step_of(std::size_t num_bytes) {
  return num_bytes < 2500 || std::getenv("TESSERA_TEST_EVERYTHING") != nullptr ? 1 : 29;
}

TEST_F(DamagedTableFile, IsRefusedWhereverItIsCutOff) {
  const TestFolder copies;
  const fs::path cut = copies / "cut";
  for (const char* name :
       {"saved.datasets.parquet", "saved.cache.arrow", "saved.file.arrow", "dictionaries.stream.arrow",
        "chats.snappy.parquet", "chats.lz4.arrow", "chats.zstd.arrow"}) {
    const std::string rows = all_lines(*open_table_file(folder() / name));
    fs::copy_file(folder() / name, cut, fs::copy_options::overwrite_existing);
    const std::size_t whole = fs::file_size(cut), step = step_of(whole);
    for (std::size_t size = whole; size-- > 0;) {
      if (size % step != 0) continue;
      fs::resize_file(cut, size);
      const std::string read = read_damaged(cut);
      // Within the end mark of a stream nothing is missing.
      EXPECT_TRUE(read.empty() || (read == rows && size + 8 > whole)) << name << " " << size;
    }
  }
}

TEST_F(DamagedTableFile, WithAnyByteChangedEndsNoProcess) {
  const TestFolder copies;
  const fs::path damaged = copies / "damaged";
  for (const fs::path& path : files("")) {
    const std::string bytes = read_file(path);
    fs::copy_file(path, damaged, fs::copy_options::overwrite_existing);
    std::fstream file(damaged, std::ios::in | std::ios::out | std::ios::binary);
    for (std::size_t at = 0; at < bytes.size(); at += step_of(bytes.size())) {
      const char changed = static_cast<char>(bytes[at] ^ (at % 2 == 0 ? 0xff : 1 << at % 8));
      file.seekp(static_cast<std::streamoff>(at)).put(changed).flush();
      read_damaged(damaged);
      file.seekp(static_cast<std::streamoff>(at)).put(bytes[at]).flush();
    }
  }
}

}  // namespace
}  // namespace tessera
