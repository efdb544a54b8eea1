#include "core/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "core/error.h"

namespace tessera {
namespace {

// The error of print_out while standard output is `path`; empty if the write succeeded.
std::string refusal_of(const char* path, const std::string& text, int mode = O_WRONLY) {
  std::fflush(stdout);
  const int kept = dup(STDOUT_FILENO);
  const int replaced = open(path, mode);
  EXPECT_GE(replaced, 0) << path;
  dup2(replaced, STDOUT_FILENO);
  close(replaced);
  std::string message;
  try {
    print_out(text);
  } catch (const Error& error) {
    message = error.what();
  }
  dup2(kept, STDOUT_FILENO);
  close(kept);
  return message;
}

TEST(PrintOut, WritesAtOnce) {
  testing::internal::CaptureStdout();
  print_out("one\n");
  print_out("");
  print_out("two");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "one\ntwo");
}

TEST(PrintOut, AFullDiskIsAnError) {
  const std::string expected = "cannot write to standard output: No space left on device";
  EXPECT_EQ(refusal_of("/dev/full", "a line\n"), expected);
  EXPECT_EQ(refusal_of("/dev/full", std::string(1 << 20, 'x')), expected);  // more than the buffer holds
  EXPECT_EQ(refusal_of("/dev/null", "a line\n"), "");
}

TEST(PrintOut, AnOutputThatCannotBeWrittenIsAnError) {
  EXPECT_EQ(refusal_of("/proc/self/status", "a line\n", O_RDONLY),
            "cannot write to standard output: Bad file descriptor");
}

}  // namespace
}  // namespace tessera
