#include <gtest/gtest.h>

#include "monitor/machine_facts.h"
#include "support/contains.h"

namespace tessera {
namespace {

TEST(MachineText, NothingKnownIsWrittenAsUnknown) {
  const std::string text = machine_text({}, {});
  EXPECT_TRUE(contains(text, "operating system   unknown")) << text;
  EXPECT_TRUE(contains(text, "no problems found")) << text;
}

TEST(MachineText, ShowsGpusAndWhichReachEachOther) {
  MachineFacts facts;
  facts.gpus = {{"NVIDIA A", "9.0", std::int64_t{80} << 30, {true, true}},
                {"NVIDIA B", "8.0", std::int64_t{40} << 30, {false, true}}};
  const std::string text = machine_text(facts, {{"a problem", "an advice"}});
  EXPECT_TRUE(contains(text, "NVIDIA A, 80 GiB, compute capability 9.0")) << text;
  EXPECT_TRUE(contains(text, "GPU 0       -   yes")) << text;
  EXPECT_TRUE(contains(text, "GPU 1      no     -")) << text;
  EXPECT_TRUE(contains(text, "a problem\n      an advice")) << text;
}

TEST(MachineText, WhatVariablesHoldStaysOnItsLineAndIsCut) {
  MachineFacts facts;
  facts.variables = {{"NCCL_DEBUG", "IN\x1b[2J\nFO"}, {"NCCL_ALGO", std::string(1000, 'x')}};
  const std::string text = machine_text(facts, {{"a\nproblem", "an\nadvice"}});
  EXPECT_TRUE(contains(text, "  NCCL_DEBUG=IN\\x1b[2J\\nFO\n")) << text;
  EXPECT_TRUE(contains(text, "  NCCL_ALGO=" + std::string(200, 'x') + "...\n")) << text;
  EXPECT_TRUE(contains(text, "  a\\nproblem\n      an\\nadvice\n")) << text;
}

TEST(MachineJson, HasTheSameFactsAndNullsForTheUnknown) {
  MachineFacts facts;
  facts.host.memory.total_bytes = 1024;
  facts.variables["NCCL_DEBUG"] = "INFO";
  facts.rank_variables["RANK"] = "\xff";  // any bytes
  const Json json = machine_json(facts, {{"a problem", "an advice"}});
  EXPECT_EQ(json["host"]["memory"]["total_bytes"], 1024);
  EXPECT_TRUE(json["host"]["kernel"].is_null());
  EXPECT_EQ(json["variables"]["NCCL_DEBUG"], "INFO");
  EXPECT_EQ(json["problems"][0]["advice"], "an advice");
  EXPECT_EQ(json_text(json["ranks"]["variables"]), "{\"RANK\":\"\xef\xbf\xbd\"}");
}

}  // namespace
}  // namespace tessera
