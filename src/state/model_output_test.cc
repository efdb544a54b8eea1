#include "state/model_output.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/error.h"
#include "core/file.h"
#include "support/small_language_model.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// A run whose folder was moved away must not go on in a new one of the same name.
TEST(ModelOutput, AFolderThatIsGoneIsNotMadeAgain) {
  const auto model = small_bloom();
  const fs::path gone = fs::path(testing::TempDir()) / "tessera_model_output_test" / "checkpoint-1.part";
  EXPECT_THROW(write_model_files({*model, model->config()}, gone), Error);
  EXPECT_FALSE(fs::exists(gone.parent_path()));
}

TEST(ModelOutput, AFinishedModelIsReplacedOnlyWhereThatIsAskedForOrTheRunIsTheSame) {
  const TestFolder folder;
  OutputSettings output;
  output.output_dir = folder.path().string();
  const auto refusal = [&](const OutputSettings& asked, const Environment& environment) -> std::string {
    try {
      check_replaces_no_model(asked, environment);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  fs::create_directory(folder / "checkpoint-3");  // of a run that has not finished
  EXPECT_EQ(refusal(output, {}), "");
  write_file_atomically(folder / "model.safetensors", "");
  EXPECT_EQ(refusal(output, {}),
            "--output_dir " + output.output_dir +
                " holds a finished model, model.safetensors, which this run would replace: give another folder, or "
                "--overwrite_output_dir; --resume_from_checkpoint true continues the run that wrote it");
  EXPECT_NE(refusal(output, Environment({{"SLURM_JOB_ID", "7"}, {"TORCHELASTIC_RESTART_COUNT", "0"}})), "");
  EXPECT_EQ(refusal(output, Environment({{"SLURM_RESTART_COUNT", "1"}})), "");
  EXPECT_EQ(refusal(output, Environment({{"TORCHELASTIC_RESTART_COUNT", "2"}})), "");
  OutputSettings told = output;
  told.overwrites = true;
  EXPECT_EQ(refusal(told, {}), "");
  told = output;
  told.resume_from_latest = true;
  EXPECT_EQ(refusal(told, {}), "");
  told = output;
  told.resume_from_checkpoint = "elsewhere/checkpoint-3";
  EXPECT_EQ(refusal(told, {}), "");
}

}  // namespace
}  // namespace tessera
