#include "launch/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tessera {
namespace {

TEST(LinePrefixer, PutsThePrefixBeforeEveryLine) {
  std::vector<std::string> lines;
  LinePrefixer prefixer("[rank 3] ", [&](std::string_view line) { lines.emplace_back(line); });
  prefixer.add("one\ntw");
  prefixer.add("o\n\nthr");
  EXPECT_EQ(lines, (std::vector<std::string>{"[rank 3] one\n", "[rank 3] two\n", "[rank 3] \n"}));
  prefixer.finish();
  EXPECT_EQ(lines.back(), "[rank 3] thr\n");
  prefixer.finish();
  EXPECT_EQ(lines.size(), 4U);
}

TEST(LinePrefixer, PassesOnALineWithoutEndInPieces) {
  std::size_t bytes = 0;
  LinePrefixer prefixer("", [&](std::string_view line) { bytes += line.size(); });
  prefixer.add(std::string(200'000, 'x'));
  EXPECT_GE(bytes, 200'000U);
}

// What `text` from a rank's stdout becomes on the launcher's.
std::string shown(const std::string& prefix, const std::string& text) {
  Pipe console;
  std::array<Fd, 2> fds = {Fd(dup(console.write_end.get())), Fd(dup(console.write_end.get()))};
  RankOutput output({.log_file = "", .show = true, .prefix = prefix}, std::move(fds));
  console.write_end.reset();
  const int saved_out = dup(STDOUT_FILENO), saved_err = dup(STDERR_FILENO);
  output.attach();
  EXPECT_EQ(write(STDOUT_FILENO, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  dup2(saved_out, STDOUT_FILENO);
  dup2(saved_err, STDERR_FILENO);
  close(saved_out);
  close(saved_err);
  output.close_rank_ends();
  output.drain();
  std::string seen(4096, '\0');
  const ssize_t count = read(console.read_end.get(), seen.data(), seen.size());
  seen.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return seen;
}

TEST(RankOutput, ShowsBytesAsTheyComeOrWithAPrefix) {
  EXPECT_EQ(shown("", "a\nb"), "a\nb");
  EXPECT_EQ(shown("[rank 0] ", "a"), "[rank 0] a\n");
}

}  // namespace
}  // namespace tessera
