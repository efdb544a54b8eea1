// `tessera man` and `tessera --version`: what the program says about itself.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>

#include "core/error.h"
#include "core/text.h"
#include "support/program.h"

namespace tessera {
namespace {

TEST(ManCommand, ListsEveryCommandAndStatus) {
  const Ended man = run_tessera("man");
  EXPECT_EQ(man.status, 0) << man.output;
  const std::string names = run_shell(binary() + R"( help | sed -n 's/^  \([^ ]*\) .*/\1/p')").output;
  for (const std::string& name : split(names, '\n')) {
    if (name.empty()) continue;
    const std::string start = "\n\\fBtessera " + std::regex_replace(name, std::regex("-"), "\\-");
    EXPECT_TRUE(contains(man.output, start + " ") || contains(man.output, start + "\\fR")) << name;
  }
  for (const ExitStatus status :
       {ExitStatus::kOk, ExitStatus::kUsage, ExitStatus::kCollective, ExitStatus::kRegression}) {
    EXPECT_TRUE(contains(man.output, fmt::format("\\fB{}\\fR\n", static_cast<int>(status))));
  }
  EXPECT_TRUE(contains(man.output, "\n\\fBLEARNING_RATE\\fR\n\\-\\-learning_rate of train sft, ")) << man.output;
  EXPECT_EQ(run_tessera("man").output, man.output) << "the same program has the same page";
}

TEST(Help, OfACommandIsThatCommandsOwn) {
  for (const std::string command : {"train", "inspect", "train sft"}) {
    const Ended asked = run_tessera("help " + command);
    EXPECT_EQ(asked.status, 0) << asked.output;
    EXPECT_EQ(asked.output, run_tessera(command + " --help").output);
    EXPECT_TRUE(contains(asked.output, "usage: tessera " + command)) << asked.output;
  }
  EXPECT_EQ(run_tessera("help nonsense").status, 2);
}

TEST(ManCommand, IsCorrectRoff) {
  if (run_shell("command -v groff").status != 0) GTEST_SKIP() << "there is no groff";
  const Ended ended = run_shell(binary() + " man | groff -man -Tutf8 -ww 2>&1 >/dev/null");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.output, "");
}

TEST(VersionOption, NamesTheProgramAndWhatItRunsOn) {
  const Ended ended = run_tessera("--version");
  EXPECT_EQ(ended.status, 0) << ended.output;
  const std::regex lines(
      "tessera \\d+\\.\\d+\\.\\d+( \\([0-9a-f]+(-dirty)?\\))?\n"
      "torch \\d+\\.\\d+\\.\\d+\\S*, built with \\d+\\.\\d+\\.\\d+\\S*\n"
      "(CUDA \\d+\\.\\d+, for GPUs of .+|no CUDA flavour)\n"
      "(Open MPI v\\d.*|no MPI: .+)\n");
  EXPECT_TRUE(std::regex_match(ended.output, lines)) << ended.output;
  EXPECT_EQ(run_tessera("version").output, ended.output);
}

}  // namespace
}  // namespace tessera
