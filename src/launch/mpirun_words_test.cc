#include "launch/mpirun_words.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

const std::string kRule = std::string(74, '-') + "\n";

TEST(MpirunWords, AboutSignalsAndEndsExplainNothing) {
  EXPECT_EQ(explanation_in(""), "");
  EXPECT_EQ(explanation_in("mpirun: Forwarding signal 18 to job\n"), "");
  EXPECT_EQ(
      explanation_in(kRule + "mpirun noticed that process rank 0 with PID 0 on node a exited on signal 9 (Killed).\n" +
                     kRule),
      "");
}

TEST(MpirunWords, AboutBrokenRulesExplain) {
  const std::string rule = kRule +
                           "mpirun has exited due to process rank 1 with PID 0 on\nnode a exiting improperly.\n" +
                           std::string(74, '-');
  EXPECT_EQ(explanation_in(rule), rule);
  EXPECT_EQ(explanation_in("mpirun: Forwarding signal 18 to job\n" + rule + "\n"), rule);
}

}  // namespace
}  // namespace tessera
