#include "monitor/job_end.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tessera {
namespace {

TEST(JobEnd, IsReadFromSlurmsWords) {
  setenv("TZ", "UTC", 1);
  EXPECT_EQ(slurm_time("2026-11-16T20:05:00"), 1794859500.0);
  for (const char* other : {"", "N/A", "Unknown", "2026-11-16", "2026-11-16T20:05:00x"}) {
    EXPECT_FALSE(slurm_time(other)) << other;
  }
  unsetenv("TZ");
}

TEST(JobEnd, IsKnownOnlyWithinAJob) {
  EXPECT_FALSE(job_end_time(Environment()));
  EXPECT_EQ(job_end_time(Environment({{"SLURM_JOB_END_TIME", "1794859500"}})), 1794859500.0);
}

}  // namespace
}  // namespace tessera
