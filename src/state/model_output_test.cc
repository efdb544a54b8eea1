#include "state/model_output.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/error.h"
#include "support/small_language_model.h"

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

}  // namespace
}  // namespace tessera
