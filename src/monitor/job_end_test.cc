#include "monitor/job_end.h"

#include <gtest/gtest.h>

#include "core/clock.h"
#include "core/error.h"

namespace tessera {
namespace {

TEST(JobEnd, IsReadFromSlurmsWords) {
  EXPECT_EQ(slurm_time_left("1-02:03:04"), 86400.0 + 2 * 3600 + 3 * 60 + 4);
  EXPECT_EQ(slurm_time_left("10:00:00"), 36000.0);
  EXPECT_EQ(slurm_time_left("2:03"), 123.0);
  EXPECT_EQ(slurm_time_left("0:00"), 0.0);
  EXPECT_FALSE(slurm_time_left("UNLIMITED"));
  for (const char* other : {"", "INVALID", "5", "1:2:3:4", "1-2-3:00", "x:00", "-1:00"}) {
    EXPECT_THROW(slurm_time_left(other), Error) << other;
  }
}

TEST(JobEnd, IsKnownOnlyWithinAJob) {
  EXPECT_FALSE(job_time_left(Environment()));
  const auto end = static_cast<long>(wall_seconds()) + 1000;
  EXPECT_NEAR(*job_time_left(Environment({{"SLURM_JOB_END_TIME", std::to_string(end)}})), 1000, 5);
}

}  // namespace
}  // namespace tessera
