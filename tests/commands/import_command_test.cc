// `tessera import` as users start it, on tests/data/import: what it writes, what it never overwrites, how it ends.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/file.h"
#include "support/program.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

const std::string kImported = std::string(TESSERA_TEST_DATA_FOLDER) + "/import/";

Ended import_in(const TestFolder& folder, const std::string& arguments) {
  return run_shell(fmt::format("cd {} && {} {}", folder.path().string(), binary(), arguments));
}

TEST(ImportCommand, WritesAnExperimentThatTheCatalogueFinds) {
  const TestFolder folder;
  const Ended ended = import_in(folder, "import " + kImported + "deepspeed --name mine/zero2");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "wrote experiments/zero2/zero2.json\nwrote experiments/zero2.json\n"))
      << ended.output;
  const Ended shown = import_in(folder, "experiment show mine/zero2");
  EXPECT_EQ(shown.status, 0) << shown.output;
  EXPECT_TRUE(contains(shown.output, "--deepspeed zero2.json")) << shown.output;
}

// The fenced block after `mark`.
std::string block_after(const std::string& page, const std::string& mark) {
  const std::size_t fence = page.find("\n```", page.find(mark)), begin = page.find('\n', fence + 1) + 1;
  return page.substr(begin, page.find("```\n", begin) - begin);
}

TEST(ImportCommand, PrintsAndWritesWhatItsPageShows) {
  const TestFolder folder;
  const std::string root = std::string(TESSERA_SOURCE_FOLDER) + "/";
  const std::string page = read_file(root + "docs/importing.md");
  write_file_atomically(folder / "zero2.sbatch", block_after(page, "A script for DeepSpeed on two GPUs:"));
  std::filesystem::copy_file(root + "experiments/ds_configs/zero2.json", folder / "zero2.json");
  const Ended ended = run_shell(fmt::format("cd {} && env -u DATA_DIR {} import zero2.sbatch --name mine/zero2",
                                            folder.path().string(), binary()));
  EXPECT_EQ(ended.output, block_after(page, "--name mine/zero2` prints:"));
  EXPECT_EQ(read_file(folder / "experiments/zero2.json"), block_after(page, "and writes:"));
}

TEST(ImportCommand, ReplacesFilesOnlyIfForced) {
  const TestFolder folder;
  const std::string import = "import " + kImported + "single_gpu -o mine/a.json";
  EXPECT_EQ(import_in(folder, import).status, 0);
  const std::string written = read_file(folder.path() / "mine/a.json");
  const Ended again = import_in(folder, import + " --name mine/other");
  EXPECT_EQ(again.status, 2);
  EXPECT_TRUE(contains(again.output, "mine/a.json: it exists; choose another with -o or --name")) << again.output;
  EXPECT_EQ(read_file(folder.path() / "mine/a.json"), written);
  EXPECT_EQ(import_in(folder, import + " --name mine/other --force").status, 0);
  EXPECT_NE(read_file(folder.path() / "mine/a.json"), written);
}

TEST(ImportCommand, ADryRunWritesNothing) {
  const TestFolder folder;
  const Ended ended = import_in(folder, "import " + kImported + "multi_gpu --dry_run");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "\"tessera_experiments\": 1")) << ended.output;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(ImportCommand, EndsWithStatus2AndWritesNothingIfItRefuses) {
  const TestFolder folder;
  for (const char* name : {"binary", "missing_env", "missing_json", "no_launch", "open_quote", "refused", "two_jobs",
                           "two_trainings", "unknown_model", "wrong_time", "wrong_value", "none"}) {
    EXPECT_EQ(import_in(folder, fmt::format("import {}broken/{}.sbatch", kImported, name)).status, 2) << name;
  }
  EXPECT_EQ(import_in(folder, "import").status, 2);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace tessera
