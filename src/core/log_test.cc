#include "core/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <filesystem>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/output.h"
#include "core/text.h"

namespace tessera {
namespace {

// Redirects standard error into a packet socket: one packet is one write(2).
class CapturedWrites {
 public:
  CapturedWrites() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets_), 0);
    saved_ = dup(STDERR_FILENO);
    dup2(sockets_[0], STDERR_FILENO);
  }
  ~CapturedWrites() {
    restore();
    close(sockets_[1]);
  }
  CapturedWrites(const CapturedWrites&) = delete;
  CapturedWrites& operator=(const CapturedWrites&) = delete;

  std::string next() {
    std::string packet(1 << 16, '\0');
    const ssize_t size = recv(sockets_[1], packet.data(), packet.size(), MSG_DONTWAIT);
    packet.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return packet;
  }
  void restore() {
    if (saved_ < 0) return;
    dup2(saved_, STDERR_FILENO);
    close(saved_);
    close(sockets_[0]);
    saved_ = -1;
  }

 private:
  int sockets_[2];
  int saved_;
};

// What follows "12:34:56.789 ", or a complaint.
std::string after_time(const std::string& line) {
  const std::string form = "00:00:00.000 ";
  for (std::size_t i = 0; i < form.size(); ++i) {
    const bool fits = i < line.size() &&
                      (form[i] == '0' ? std::isdigit(static_cast<unsigned char>(line[i])) != 0 : line[i] == form[i]);
    if (!fits) return "no time in: " + line;
  }
  return line.substr(form.size());
}

class Log : public testing::Test {
 protected:
  void SetUp() override { configure_log("info", -1); }
  void TearDown() override { configure_log("info", -1); }
};

TEST_F(Log, ALineHasTimeRankLevelAndMessage) {
  configure_log("info", 3);
  CapturedWrites writes;
  log_error("lost {} of {}", 1, 2);
  EXPECT_EQ(after_time(writes.next()), "rank 3 error lost 1 of 2\n");
  configure_log("info", 0);
  log_info("hello");
  EXPECT_EQ(after_time(writes.next()), "rank 0 info  hello\n");
}

TEST_F(Log, AProcessWithoutRankNamesNone) {
  configure_log("info", -1);
  CapturedWrites writes;
  log_info("hello");
  EXPECT_EQ(after_time(writes.next()), "info  hello\n");
}

TEST_F(Log, SeveralLinesArePrefixedOnceAndWrittenAtOnce) {
  CapturedWrites writes;
  log_info("one\n  two\n");
  EXPECT_EQ(after_time(writes.next()), "info  one\n  two\n");
  EXPECT_EQ(writes.next(), "");
}

TEST_F(Log, ALineMakesTheBarOfProgressMoveDown) {
  CapturedWrites writes;
  write_progress("\r 50%", " 50%");
  EXPECT_EQ(writes.next(), "\r 50%");
  log_info("hello");
  const std::string written = writes.next();
  EXPECT_TRUE(written.starts_with("\r\x1b[2K") && written.ends_with("info  hello\n 50%")) << written;
  write_progress("\n", "");
  EXPECT_EQ(writes.next(), "\n");
  log_info("hello");
  EXPECT_EQ(after_time(writes.next()), "info  hello\n");
}

TEST_F(Log, WithoutRanksOnlyRankZeroIsShown) {
  configure_log("warn", 0);
  EXPECT_FALSE(log_enabled(LogLevel::kInfo));
  EXPECT_TRUE(log_enabled(LogLevel::kWarn));
  configure_log("warn", 1);
  EXPECT_FALSE(log_enabled(LogLevel::kWarn));
}

TEST_F(Log, AnEmptySpecMeansInfo) {
  configure_log("", 0);
  EXPECT_FALSE(log_enabled(LogLevel::kDebug));
  EXPECT_TRUE(log_enabled(LogLevel::kInfo));
}

TEST_F(Log, RanksAreChosenByRangesOrAll) {
  for (int rank : {0, 3, 7}) {
    configure_log("debug,0-3,7", rank);
    EXPECT_TRUE(log_enabled(LogLevel::kDebug)) << rank;
    configure_log("Debug, ALL", rank);
    EXPECT_TRUE(log_enabled(LogLevel::kDebug)) << rank;
  }
  for (int rank : {4, 8}) {
    configure_log("debug,0-3,7", rank);
    EXPECT_FALSE(log_enabled(LogLevel::kWarn)) << rank;
  }
  configure_log("debug,1", 0);
  EXPECT_FALSE(log_enabled(LogLevel::kInfo));
}

TEST_F(Log, ErrorsAreShownFromEveryRank) {
  configure_log("error,0", 5);
  EXPECT_TRUE(log_enabled(LogLevel::kError));
}

TEST_F(Log, AWrongSpecIsRefusedAndChangesNothing) {
  configure_log("debug", 0);
  for (const char* spec : {"loud", "info,", "info,x", "info,3-1", "info,-1", "info,1-", "info,,all", "0-3", ","}) {
    EXPECT_THROW(configure_log(spec, 0), UsageError) << spec;
    EXPECT_NE(log_spec_mistake(spec), "") << spec;
  }
  for (const char* spec : {"", "warn", "debug,all", "INFO,0,4-7"}) EXPECT_EQ(log_spec_mistake(spec), "") << spec;
  EXPECT_TRUE(log_enabled(LogLevel::kDebug));
  try {
    configure_log("loud", 0);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "TESSERA_LOG=loud: expected debug, info, warn or error, then optionally ranks: 'info', 'debug,all', "
                 "'info,0-3'");
  }
}

TEST_F(Log, LinesOfSeveralThreadsDoNotMix) {
  CapturedWrites writes;
  std::vector<std::thread> threads;
  constexpr int kNumThreads = 4, kNumLines = 10;
  for (int t = 0; t < kNumThreads; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < kNumLines; ++i) log_info("{}", std::string(100, static_cast<char>('a' + t)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kNumThreads * kNumLines; ++i) {
    const std::string line = after_time(writes.next());
    ASSERT_GT(line.size(), 6u);
    EXPECT_EQ(line, "info  " + std::string(100, line[6]) + "\n");
  }
  EXPECT_EQ(writes.next(), "");
}

TEST_F(Log, LeavesErrnoAlone) {
  CapturedWrites writes;
  const int read_only = open("/dev/null", O_RDONLY);
  ASSERT_GE(read_only, 0);
  dup2(read_only, STDERR_FILENO);  // the write fails with EBADF
  close(read_only);
  errno = ENOSPC;
  log_info("full");
  const int left = errno;
  writes.restore();
  EXPECT_EQ(left, ENOSPC);
}

TEST_F(Log, ARanksOwnFileHasItsLinesThoughTheRankIsNotShown) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "tessera_log_file";
  const std::filesystem::path file = folder / "job-7" / "rank-1.log";
  std::filesystem::remove_all(folder);
  configure_log("info", 1);
  open_log_file(file);
  CapturedWrites writes;
  log_debug("less than info");
  log_warn("a warning");
  write_log_file("for the file alone");
  log_error("an error");
  EXPECT_EQ(after_time(writes.next()), "rank 1 error an error\n");
  EXPECT_EQ(writes.next(), "");
  std::vector<std::string> lines;
  for (const std::string& line : split(read_file(file), '\n')) {
    if (!line.empty()) lines.push_back(after_time(line));
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"rank 1 warn  a warning", "rank 1 info  for the file alone",
                                             "rank 1 error an error"}));
  // Full from now on: reported once, whichever ranks are shown.
  open_log_file("/dev/full");
  log_info("lost");
  log_info("lost, too");
  EXPECT_EQ(after_time(writes.next()),
            "rank 1 warn  cannot write to this rank's log file; it gets no more lines: No space left on device\n");
  EXPECT_EQ(writes.next(), "");
  EXPECT_THROW(open_log_file(file / "below" / "a.log"), UsageError);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tessera
