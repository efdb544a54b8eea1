#include "experiment/site.h"

#include <gtest/gtest.h>

#include "support/contains.h"
#include "support/message_of.h"

namespace tessera {
namespace {

TEST(Site, ReadsEveryName) {
  const Site site = parse_site(
      R"({"tessera_site": 1, "partition": "gpu", "account": "a", "constraint": "a100,4gpus", "reservation": "r",
          "qos": "q", "gpus_per_node": 4, "modules": ["cuda/13.0"], "interface": "ib0",
          "environment": {"NCCL_IB_HCA": "mlx5"}, "gate_environment": {"NCCL_ALGO": "Tree"},
          "sbatch": ["--mail-type=END"], "srun": ["--mpi=pmix_v4"], "prefix": "apptainer exec x.sif",
          "settings": {"all": {"bf16": true, "logging_steps": 5}, "bloom-qa": {"logging_steps": 7}}})",
      "site.json");
  EXPECT_EQ(site.partition, "gpu");
  EXPECT_EQ(site.gpus_per_node, 4);
  EXPECT_EQ(site.environment.text("NCCL_IB_HCA"), "mlx5");
  EXPECT_EQ(site.srun, std::vector<std::string>{"--mpi=pmix_v4"});
  EXPECT_EQ(site.settings_of("bloom-qa").text("logging_steps"), "7");
  EXPECT_EQ(site.settings_of("gpt-qa").text("logging_steps"), "5");
  EXPECT_EQ(site.settings_of("gpt-qa").text("bf16"), "true");
}

TEST(Site, RefusesMistakes) {
  const auto message = [](const std::string& text) { return message_of([&] { parse_site(text, "site.json"); }); };
  EXPECT_TRUE(contains(message("{}"), "\"tessera_site\": 1 is missing"));
  EXPECT_TRUE(contains(message(R"({"tessera_site": 1, "partitions": "x"})"), "did you mean \"partition\"?"));
  EXPECT_TRUE(contains(message(R"({"tessera_site": 1, "account": "a\nb"})"), "account: expected one line"));
  EXPECT_TRUE(contains(message(R"({"tessera_site": 1, "environment": {"a b": 1}})"), "no name of a variable"));
  EXPECT_TRUE(contains(message(R"({"tessera_site": 1, "gpus_per_node": -1})"), "gpus_per_node"));
  EXPECT_TRUE(contains(message(R"({"tessera_site": 1, "settings": {"bloom-qa": 3}})"),
                       "settings.bloom-qa: expected an object"));
}

TEST(Site, ReadsWhatItWrites) {
  const std::string text = first_site_text(parse_sinfo("main*|gpu:2|(null)|4|4\n"));
  const Site site = parse_site(text, "site.json");
  EXPECT_EQ(site.partition, "main");
  EXPECT_EQ(site.gpus_per_node, 2);
}

TEST(Site, IsLookedForInTheUsualPlaces) {
  EXPECT_EQ(site_file("own.json", Environment({{"TESSERA_SITE", "other.json"}})), "own.json");
  EXPECT_EQ(site_file("", Environment({{"TESSERA_SITE", "other.json"}})), "other.json");
  EXPECT_EQ(own_site_file(Environment({{"HOME", "/h"}})), "/h/.config/tessera/site.json");
  EXPECT_EQ(own_site_file(Environment({{"HOME", "/h"}, {"XDG_CONFIG_HOME", "/c"}})), "/c/tessera/site.json");
  EXPECT_EQ(site_file("", Environment({{"HOME", "/there/is/none"}})), std::nullopt);
}

}  // namespace
}  // namespace tessera
