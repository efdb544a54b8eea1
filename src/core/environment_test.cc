#include "core/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/error.h"

namespace tessera {
namespace {

TEST(Environment, AnEmptyVariableCountsAsUnset) {
  const Environment environment({{"RANK", ""}, {"HOST", "n1"}});
  EXPECT_FALSE(environment.find("RANK"));
  EXPECT_FALSE(environment.find_count("RANK"));
  EXPECT_FALSE(environment.find("OTHER"));
  EXPECT_EQ(environment.find("HOST"), "n1");
}

TEST(Environment, CountsAreWholeNumbersOfAtLeastZero) {
  Environment environment({{"RANK", "0"}, {"WORLD_SIZE", "2147483647"}});
  EXPECT_EQ(environment.find_count("RANK"), 0);
  EXPECT_EQ(environment.find_count("WORLD_SIZE"), 2147483647);
  for (const char* text : {"-1", "x", "1.5", "2147483648", " 1"}) {
    environment.set("RANK", text);
    EXPECT_THROW(environment.find_count("RANK"), UsageError) << text;
  }
}

TEST(Environment, AWrongCountIsRefusedByNameAndValue) {
  const Environment environment({{"SLURM_PROCID", "two"}});
  try {
    environment.find_count("SLURM_PROCID");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "SLURM_PROCID=two in the environment: expected a whole number of at least 0");
  }
}

TEST(Environment, OfProcessSeesTheProcessVariablesWithTheirEqualSigns) {
  ASSERT_EQ(setenv("TESSERA_ENVIRONMENT_TEST", "a=b=c", 1), 0);
  EXPECT_EQ(Environment::of_process().find("TESSERA_ENVIRONMENT_TEST"), "a=b=c");
  ASSERT_EQ(unsetenv("TESSERA_ENVIRONMENT_TEST"), 0);
  EXPECT_FALSE(Environment::of_process().find("TESSERA_ENVIRONMENT_TEST"));
}

TEST(Error, AContextStandsBeforeTheMessageAndKeepsTheStatus) {
  const Error outer = Error("port 29500 is taken", ExitStatus::kRendezvous).in_context("rank 0");
  EXPECT_STREQ(outer.what(), "rank 0: port 29500 is taken");
  EXPECT_EQ(outer.status(), ExitStatus::kRendezvous);
  EXPECT_EQ(UsageError("x").in_context("ds.json").status(), ExitStatus::kUsage);
}

std::string refusal_of_threads(const std::string& value) {
  try {
    check_thread_count(Environment({{"OMP_NUM_THREADS", value}}));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ThreadCount, IsWhatAHostCanStart) {
  for (const char* value : {"", "1", "2", "1024", "4,2", " 4 , 2 "})
    EXPECT_EQ(refusal_of_threads(value), "accepted") << value;
  EXPECT_NO_THROW(check_thread_count(Environment()));
  for (const char* value : {"0", "-1", "100000", "99999999999999999999", "all", "4,", "4,100000", "1.5"}) {
    EXPECT_TRUE(refusal_of_threads(value).starts_with(std::string("OMP_NUM_THREADS=") + value +
                                                      " in the environment: expected a number of threads from 1 to "))
        << refusal_of_threads(value);
  }
}

}  // namespace
}  // namespace tessera
