#include "data/text/corpus.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "core/error.h"
#include "core/file.h"
#include "support/lines_of_text.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::int32_t>;

// Letters are tokens; "#" drops a row, "!" is refused, and a row longer than 8 is cut into pieces.
std::vector<EncodedRow> encode_letters(const PlacedRow& row) {
  const std::string text = row.values.at("text").get<std::string>();
  if (text == "!") throw UsageError("a row must not be '!'");
  if (text == "#") return {{.ids = {}, .counted = {}, .is_truncated = false, .is_dropped = true}};
  std::vector<EncodedRow> pieces;
  for (std::size_t begin = 0; begin < text.size(); begin += 8) {
    const std::string part = text.substr(begin, 8);
    EncodedRow& piece = pieces.emplace_back();
    piece.ids.assign(part.begin(), part.end());
    if (part.size() % 2 == 1) {
      piece.counted.assign(part.size(), true);
      piece.counted[0] = false;
    }
  }
  return pieces;
}

// 60 rows of 1 to 20 letters in blocks of 5 rows; parts of some 2 blocks.
std::string sample_text(int num_rows = 60) {
  std::string text;
  for (int row = 0; row < num_rows; ++row) {
    text += row == 17 ? "#" : std::string(static_cast<std::size_t>(row % 20) + 1, static_cast<char>('a' + row % 26));
    text += "\n";
  }
  return text;
}

class CorpusTest : public ::testing::Test {
 protected:
  CorpusTest() { write_file_atomically(file(), sample_text()); }

  fs::path file() const { return folder_ / "rows.txt"; }
  fs::path cache() const { return folder_ / "cache"; }
  OpenStream opener() const {
    return [file = file()] { return std::make_unique<LinesOfText>(file, 5); };
  }
  CorpusSettings settings() const {
    return {
        .tokenizer_hash = "letters", .encoder = "test", .cache_folder = cache(), .num_threads = 2, .part_bytes = 80};
  }
  Corpus load(const EncodeRow& encode = encode_letters) const { return load_corpus(opener(), encode, settings()); }

  // What the rows of the file must become.
  std::vector<Ids> expected_ids() const {
    std::vector<Ids> all;
    LinesOfText lines(file(), 5);
    while (const auto block = lines.next()) {
      for (const PlacedRow& row : lines.parse(*block)) {
        for (const EncodedRow& piece : encode_letters(row)) {
          if (!piece.is_dropped) all.push_back(piece.ids);
        }
      }
    }
    return all;
  }
  void expect_whole(const TokenRows& rows) const {
    const std::vector<Ids> expected = expected_ids();
    ASSERT_EQ(rows.size(), std::ssize(expected));
    for (std::int64_t row = 0; row < rows.size(); ++row) {
      const Ids& ids = expected[static_cast<std::size_t>(row)];
      ASSERT_TRUE(std::ranges::equal(rows.ids(row), ids)) << row;
      ASSERT_EQ(rows.num_counted(row), std::ssize(ids) - 1);
      ASSERT_EQ(rows.counts_as_target(row, 0), ids.size() % 2 == 0);
    }
    EXPECT_EQ(rows.counts().num_rows_of_file, std::ranges::count(read_file(file()), '\n'));
    EXPECT_EQ(rows.counts().num_dropped, 1);
  }
  std::vector<fs::path> kept_files(const fs::path& folder) const {
    std::set<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) files.insert(entry.path().filename());
    return {files.begin(), files.end()};
  }

  TestFolder folder_;
};

TEST_F(CorpusTest, TheSecondStartMapsWhatTheFirstMade) {
  const Corpus first = load();
  expect_whole(first.rows);
  const auto num_parts = std::ssize(first.rows.parts());
  EXPECT_GT(num_parts, 4);
  EXPECT_EQ(first.num_parts_made, num_parts);
  ASSERT_EQ(std::ssize(kept_files(first.folder)), num_parts + 1) << "the parts and the index";
  EXPECT_EQ(kept_files(first.folder)[1], "part-00000.tokens");
  const Corpus second = load([](const PlacedRow&) -> std::vector<EncodedRow> { throw Error("nothing is encoded"); });
  expect_whole(second.rows);
  EXPECT_EQ(second.num_parts_made, 0);
  EXPECT_EQ(second.folder, first.folder);
  EXPECT_TRUE(second.rows.parts()[0].is_mapped());
}

TEST_F(CorpusTest, TheTokensDoNotDependOnTheNumberOfThreads) {
  CorpusSettings other = settings();
  other.num_threads = 7;
  other.cache_folder = "";
  const Corpus corpus = load_corpus(opener(), encode_letters, other);
  expect_whole(corpus.rows);
  EXPECT_EQ(corpus.folder, "");
  EXPECT_EQ(corpus.rows.parts().size(), load().rows.parts().size());
}

TEST_F(CorpusTest, WithoutAWritableFolderTheTokensStayInMemory) {
  write_file_atomically(cache(), "in the way");
  const Corpus corpus = load();
  expect_whole(corpus.rows);
  EXPECT_EQ(corpus.folder, "");
  EXPECT_FALSE(corpus.rows.parts()[0].is_mapped());
}

TEST_F(CorpusTest, AKilledStartIsTakenUpWhereItWas) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::atomic<int> num_rows = 0;
    load([&](const PlacedRow& row) {
      if (++num_rows == 45) ::_exit(7);  // between two parts, or within one
      return encode_letters(row);
    });
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(WEXITSTATUS(status), 7);
  const Corpus corpus = load();
  expect_whole(corpus.rows);
  EXPECT_GT(corpus.num_parts_made, 0);
  EXPECT_LT(corpus.num_parts_made, std::ssize(corpus.rows.parts()));
  EXPECT_EQ(kept_files(corpus.folder).size(), corpus.rows.parts().size() + 1) << "no lock, nothing half-written";
}

// Else tokens of the later content would be found under the key of the earlier one.
TEST_F(CorpusTest, AFileThatChangesWhileItIsReadIsRefused) {
  std::once_flag once;
  const std::string message = message_of([&] {
    load([&](const PlacedRow& row) {
      std::call_once(once, [&] { write_file_atomically(file(), sample_text() + "more\n"); });
      return encode_letters(row);
    });
  });
  EXPECT_EQ(message, file().string() + ": changed while its rows were tokenised; start again when it stays as it is");
  expect_whole(load().rows);
  write_file_atomically(file(), sample_text());
  const Corpus corpus = load();
  expect_whole(corpus.rows);
  EXPECT_EQ(corpus.num_parts_made, std::ssize(corpus.rows.parts())) << "nothing of the refused start is kept";
}

TEST_F(CorpusTest, ProcessesDivideThePartsAndMakeEachOnce) {
  write_file_atomically(file(), sample_text(300));
  const fs::path log = folder_ / "encoded";
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    const int encoded = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    const Corpus corpus = load([&](const PlacedRow& row) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      return ::write(encoded, ".", 1) == 1 ? encode_letters(row) : std::vector<EncodedRow>{};
    });
    ::_exit(corpus.rows.size() == std::ssize(expected_ids()) && corpus.num_parts_made > 0 ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << "each has all rows, and has made some of them";
  }
  EXPECT_EQ(read_file(log).size(), 300U) << "each row was encoded by one process";
  expect_whole(load().rows);
}

TEST_F(CorpusTest, ThreadsOfOneProcessShareTheWorkToo) {
  std::atomic<int> num_rows = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const Corpus corpus = load([&](const PlacedRow& row) {
          ++num_rows;
          return encode_letters(row);
        });
        expect_whole(corpus.rows);
      });
    }
  }
  EXPECT_EQ(num_rows, 60);
}

// The first process takes the first part and dies with it; the second has finished all others by then.
TEST_F(CorpusTest, ThePartOfADeadProcessIsMadeByWhoeverWaits) {
  Pipe has_begun;
  const pid_t child = ::fork();
  if (child == 0) {
    std::once_flag once;
    load([&](const PlacedRow&) -> std::vector<EncodedRow> {
      std::call_once(once, [&] { write_all(has_begun.write_end.get(), "x"); });
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      ::_exit(9);
    });
  }
  char begun;
  ASSERT_EQ(::read(has_begun.read_end.get(), &begun, 1), 1);
  const Corpus corpus = load();
  expect_whole(corpus.rows);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 9);
  EXPECT_EQ(corpus.num_parts_made, std::ssize(corpus.rows.parts()));
}

TEST_F(CorpusTest, ADamagedPartIsMadeAgainAndNoOther) {
  const Corpus good = load();
  const fs::path part = good.folder / "part-00002.tokens";
  const std::string bytes = read_file(part);
  for (const std::string& bad : {bytes.substr(0, 20), std::string(), "x" + bytes.substr(1), bytes + "x"}) {
    write_file_atomically(part, bad);
    const Corpus again = load();
    expect_whole(again.rows);
    EXPECT_EQ(again.num_parts_made, 1);
    EXPECT_EQ(read_file(part), bytes);
  }
  // Damage inside is noticed when it is read; the next start makes the part again.
  std::string bad = bytes;
  bad.back() ^= 1;
  write_file_atomically(part, bad);
  const Corpus damaged = load();
  EXPECT_EQ(damaged.num_parts_made, 0);
  const std::string message = message_of([&] {
    for (std::int64_t row = 0; row < damaged.rows.size(); ++row) damaged.rows.targets(row);
  });
  EXPECT_NE(message.find("part-00002.tokens is damaged"), std::string::npos) << message;
  const Corpus again = load();
  expect_whole(again.rows);
  EXPECT_EQ(again.num_parts_made, 1);
}

TEST_F(CorpusTest, ADamagedOrMissingIndexCostsALookAtTheParts) {
  const Corpus good = load();
  for (const std::string text : {"", "{", "[]", R"({"parts": 1000000000000})", R"({"parts": 99})"}) {
    write_file_atomically(good.folder / "index.json", text);
    const Corpus again = load();
    expect_whole(again.rows);
    EXPECT_EQ(again.num_parts_made, 0);
  }
}

TEST_F(CorpusTest, ARowThatCannotBeIsNamedByFileAndLine) {
  std::string text = sample_text();
  text.replace(text.find("\nm"), 1, "\n!\n");  // line 13, in the third block
  write_file_atomically(file(), text);
  EXPECT_EQ(message_of([&] { load(); }), file().string() + ":13: a row must not be '!'");
  const auto broken_block = [&] {
    auto stream = std::make_unique<LinesOfText>(file(), 5);
    stream->broken_block = 2;
    return stream;
  };
  EXPECT_EQ(message_of([&] { load_corpus(broken_block, encode_letters, settings()); }),
            file().string() + ":11: expected a string");
  write_file_atomically(file(), sample_text());
  expect_whole(load().rows);
}

TEST_F(CorpusTest, EverythingThatChangesTheTokensChangesTheFolder) {
  std::set<fs::path> folders;
  const auto add = [&](const auto& change) {
    CorpusSettings changed = settings();
    fs::path path = file();
    change(changed, path);
    folders.insert(load_corpus([&] { return std::make_unique<LinesOfText>(path, 5); }, encode_letters, changed).folder);
    return folders.size();
  };
  fs::copy_file(file(), folder_ / "same.txt");
  fs::copy_file(file(), folder_ / "same.csv");
  write_file_atomically(folder_ / "other.txt", sample_text(59));
  EXPECT_EQ(add([](auto&, auto&) {}), 1U);
  EXPECT_EQ(add([](auto& s, auto&) { s.num_threads = 5; }), 1U);
  EXPECT_EQ(add([&](auto&, auto& path) { path = folder_ / "same.txt"; }), 1U);  // content counts, not names
  EXPECT_EQ(add([&](auto&, auto& path) { path = folder_ / "same.csv"; }), 2U);
  EXPECT_EQ(add([&](auto&, auto& path) { path = folder_ / "other.txt"; }), 3U);
  EXPECT_EQ(add([](auto& s, auto&) { s.encoder = "max_length 5"; }), 4U);
  EXPECT_EQ(add([](auto& s, auto&) { s.tokenizer_hash = "words"; }), 5U);
  EXPECT_EQ(add([](auto& s, auto&) { s.part_bytes = 90; }), 6U);
}

TEST_F(CorpusTest, OfLargeFilesTheEndsAndTheTimeOfChangeCount) {
  const fs::path large = folder_ / "large.txt";
  std::string text(std::size_t{65} << 20, 'x');
  write_file_atomically(large, text);
  const std::string name = name_of_files({large});
  EXPECT_EQ(name_of_files({large}), name);
  EXPECT_NE(name_of_files({large, file()}), name);
  const auto time = fs::last_write_time(large);
  text.back() = 'y';
  write_file_atomically(large, text);
  fs::last_write_time(large, time);
  const std::string other_end = name_of_files({large});
  EXPECT_NE(other_end, name);
  fs::last_write_time(large, time + std::chrono::milliseconds(1));
  EXPECT_NE(name_of_files({large}), other_end);
  EXPECT_NE(message_of([&] { name_of_files({folder_ / "none"}); }).find("cannot read"), std::string::npos);
}

TEST_F(CorpusTest, ProgressEndsWithAllBytes) {
  CorpusSettings watched = settings();
  CorpusProgress last;
  watched.on_progress = [&](const CorpusProgress& progress) {
    EXPECT_GE(progress.done, last.done);
    last = progress;
  };
  const Corpus corpus = load_corpus(opener(), encode_letters, watched);
  EXPECT_EQ(last.done, last.total);
  EXPECT_EQ(last.total, std::ssize(sample_text()));
  EXPECT_EQ(last.found, 0);
  fs::remove(corpus.folder / "part-00001.tokens");
  last = {};
  EXPECT_EQ(load_corpus(opener(), encode_letters, watched).num_parts_made, 1);
  EXPECT_EQ(last.done, last.total);
  EXPECT_GT(last.found, 0);
  EXPECT_LT(last.found, last.total);
}

TEST_F(CorpusTest, AnEmptyFileHasNoRows) {
  write_file_atomically(file(), "");
  EXPECT_EQ(load().rows.size(), 0);
  EXPECT_EQ(load().rows.parts().size(), 0U);
}

}  // namespace
}  // namespace tessera
