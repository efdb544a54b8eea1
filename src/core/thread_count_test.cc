#include "core/thread_count.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace tessera {
namespace {

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
