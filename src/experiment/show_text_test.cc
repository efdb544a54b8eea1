#include "experiment/show_text.h"

#include <gtest/gtest.h>

#include "jobs/jobs.h"

namespace tessera {
namespace {

std::string steps_of(const std::string& job, int num_ranks, const std::string& rows, const std::string& batch_size) {
  ResolvedExperiment experiment;
  experiment.name = "test";
  experiment.job = job;
  experiment.settings.set("max_train_samples", rows, "test");
  experiment.settings.set("per_device_train_batch_size", batch_size, "test");
  experiment.resources.set("nodes", "1", "test");
  experiment.resources.set("gpus_per_node", std::to_string(num_ranks), "test");
  return steps_text(experiment, job_traits());
}

TEST(ShowText, ImagesAreDealtToRanksAndTheShortLastBatchStays) {
  EXPECT_EQ(steps_of("resnet-tinyimagenet", 1, "100000", "512"),
            "588 updates: 100000 rows, 512 an update, 196 updates an epoch; ends at epoch 3.00");
  EXPECT_EQ(steps_of("resnet-tinyimagenet", 1, "2000", "512"),
            "12 updates: 2000 rows, 512 an update, 4 updates an epoch; ends at epoch 3.00");
  // 1 of 1025 does not divide evenly between 2 ranks.
  EXPECT_EQ(steps_of("resnet-tinyimagenet", 2, "1025", "512"),
            "3 updates: 1025 rows, 1024 an update, 1 updates an epoch; ends at epoch 3.00");
  EXPECT_EQ(steps_of("gpt-qa", 2, "1025", "512"),
            "6 updates: 1025 rows, 1024 an update, 2 updates an epoch; ends at epoch 3.00");
}

}  // namespace
}  // namespace tessera
