#include "core/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "core/error.h"
#include "support/gunzip.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class File : public testing::Test {
 protected:
  std::size_t num_files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }
  static mode_t mode(const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(stat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  const TestFolder folder_;
};

TEST_F(File, ReadsBackEveryByteThatWasWritten) {
  std::string content;
  for (int i = 0; i < 100'000; ++i) content += static_cast<char>(i % 256);
  write_file_atomically(folder_ / "a", content);
  EXPECT_EQ(read_file(folder_ / "a"), content);
  write_file_atomically(folder_ / "a", "");
  EXPECT_EQ(read_file(folder_ / "a"), "");
  EXPECT_EQ(num_files(), 1u);
}

// So large that the disk is asked to begin before the end; pieces meet in the middle of pages.
TEST_F(File, ALargeFileInOddPiecesIsWrittenWhole) {
  constexpr std::size_t kPieces[] = {1, 4097, std::size_t{33} << 20, 12'345, (std::size_t{40} << 20) + 7};
  std::string content;
  OutputFile file(folder_ / "large");
  for (const std::size_t size : kPieces) {
    std::string piece(size, '\0');
    for (std::size_t i = 0; i < size; ++i) piece[i] = static_cast<char>((content.size() + i) % 251);
    file.write(piece);
    content += piece;
  }
  EXPECT_EQ(file.num_written(), content.size());
  file.become_target();
  EXPECT_TRUE(read_file(folder_ / "large") == content);
}

TEST_F(File, ReadsFilesThatDoNotKnowTheirSize) {
  EXPECT_FALSE(read_file("/proc/self/status").empty());
}

TEST_F(File, AMissingFileIsAUsageErrorWithPathAndReason) {
  const fs::path path = folder_ / "ds.json";
  try {
    read_file(path);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(), "cannot read " + path.string() + ": No such file or directory");
  }
  EXPECT_THROW(read_file(folder_.path()), UsageError);
}

TEST_F(File, WritesWhereTheFolderIsNotNamed) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  write_file_atomically("plain", "x");
  fs::current_path(before);
  EXPECT_EQ(read_file(folder_ / "plain"), "x");
}

TEST_F(File, AnUnwritableFolderIsAnErrorWithPathAndReason) {
  write_file_atomically(folder_ / "file", "x");
  const fs::path path = folder_ / "file" / "below";
  try {
    write_file_atomically(path, "y");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), "cannot write " + path.string() + ": Not a directory");
    EXPECT_EQ(error.status(), ExitStatus::kFailure);
  }
  EXPECT_THROW(write_file_atomically(folder_ / "absent" / "below", "y"), Error);
}

TEST_F(File, KeepsTheOldFileAndLeavesNothingWhenWritingFails) {
  const fs::path path = folder_ / "a";
  write_file_atomically(path, "old");
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{4096, limit.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);  // so that write(2) fails with EFBIG instead
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    write_file_atomically(path, std::string(10'000, 'x'));
  } catch (const Error& error) {
    message = error.what();
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(message, "cannot write " + path.string() + ": File too large");
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(num_files(), 1u);
}

TEST_F(File, KnowsWhatAKilledProcessLeft) {
  EXPECT_TRUE(is_left_behind("out/.run.json.part-99999999-3"));  // beyond the largest number of a process
  EXPECT_FALSE(is_left_behind(fmt::format("out/.run.json.part-{}-3", ::getpid())));
  for (const char* other : {"run.json", "run.json.part-99999999-3", ".run.json.part-x-3", ".run.json.part-"}) {
    EXPECT_FALSE(is_left_behind(other)) << other;
  }
}

TEST_F(File, NeverReplacesWhatIsNoFile) {
  fs::create_directory(folder_ / "sub");
  EXPECT_THROW(write_file_atomically(folder_ / "sub", "x"), Error);
  EXPECT_THROW(write_file_atomically("/dev/null", "x"), Error);
  EXPECT_TRUE(fs::is_directory(folder_ / "sub"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(File, ANewFileFollowsTheUmaskAndAnOldOneKeepsItsMode) {
  const mode_t old_mask = umask(027);
  write_file_atomically(folder_ / "a", "x");
  umask(old_mask);
  EXPECT_EQ(mode(folder_ / "a"), 0640u);
  ASSERT_EQ(chmod((folder_ / "a").c_str(), 0600), 0);
  write_file_atomically(folder_ / "a", "y");
  EXPECT_EQ(mode(folder_ / "a"), 0600u);
}

TEST_F(File, ALinkStaysALink) {
  write_file_atomically(folder_ / "a", "old");
  fs::create_symlink("a", folder_ / "link");
  write_file_atomically(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_file(folder_ / "a"), "new");
}

TEST_F(File, AcceptsTheLongestNameThatTheFileSystemAllows) {
  const fs::path path = folder_ / std::string(255, 'n');
  write_file_atomically(path, "x");
  EXPECT_EQ(read_file(path), "x");
}

TEST_F(File, ReadersSeeWholeFilesWhileThreadsWrite) {
  const fs::path path = folder_ / "a";
  const auto content = [](int writer) { return std::string(50'000, static_cast<char>('a' + writer)); };
  write_file_atomically(path, content(0));
  std::atomic<bool> is_over = false;
  std::atomic<int> num_written = 0;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 3; ++writer) {
    writers.emplace_back([&, writer] {
      while (!is_over) write_file_atomically(path, content(writer)), ++num_written;
    });
  }
  int num_cut = 0, num_mixed = 0;
  for (int num_read = 0; num_read < 100 || num_written < 30; ++num_read) {
    const std::string seen = read_file(path);
    if (seen.size() != 50'000u) ++num_cut;
    if (seen.find_first_not_of(seen.substr(0, 1)) != std::string::npos) ++num_mixed;
  }
  is_over = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(num_cut, 0);
  EXPECT_EQ(num_mixed, 0);
  EXPECT_EQ(num_files(), 1u);
}

TEST(Gzip, IsReadBackByZlib) {
  const TestFolder folder;
  const std::filesystem::path path = folder / "file.gz";
  for (const std::string& text : {std::string(), std::string("a"), std::string(300'000, 'x') + "end"}) {
    write_gzip_file(path, text);
    EXPECT_EQ(gunzip(path), text);
  }
  EXPECT_LT(read_file(path).size(), 5000u);
  EXPECT_EQ(read_file(path).substr(0, 2), "\x1f\x8b");
  EXPECT_THROW(write_gzip_file("/no/such/folder/file.gz", "a"), Error);
}

}  // namespace
}  // namespace tessera
