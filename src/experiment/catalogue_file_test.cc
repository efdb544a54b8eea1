#include "experiment/catalogue_file.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "support/contains.h"
#include "support/message_of.h"

namespace tessera {
namespace {

constexpr const char* kFamily = R"({
  "tessera_experiments": 1,  // a comment
  "family": "own/family",
  "job": "bloom-qa",
  "settings": {"learning_rate": 5e-5, "fp16": true, "names": ["a", "b"]},
  "resources": {"nodes": 1, "gpus_per_node": 1},
  "presets": {"code": {"settings": {"fp16": null}}},
  "experiments": {
    "baseline": {"settings": {"strategy": "single"}},
    /* a group */
    "more": {
      "settings": {"learning_rate": 0.5},
      "presets": {"code": {"settings": {"learning_rate": 7}}},
      "study": {"kind": "strong", "baseline": "baseline"},
      "experiments": {"2_gpus": {"resources": {"gpus_per_node": 2}}, "4_gpus": {"settings": {"learning_rate": 9}}}
    }
  }
})";

const ExperimentSpec& named(const std::vector<ExperimentSpec>& specs, const std::string& name) {
  for (const ExperimentSpec& spec : specs) {
    if (spec.name == name) return spec;
  }
  throw UsageError("there is no " + name);
}

TEST(CatalogueFile, OverlaysLevelsNameByNameAndSaysWhereEachValueIsFrom) {
  const auto specs = read_catalogue_file(kFamily, "own.json", "guide").experiments;
  ASSERT_EQ(specs.size(), 3U);
  const ExperimentSpec& baseline = named(specs, "own/family/baseline");
  EXPECT_EQ(baseline.job, "bloom-qa");
  EXPECT_EQ(baseline.settings.text("learning_rate"), "5e-05");
  EXPECT_EQ(baseline.settings.find("learning_rate")->origin, "own.json");
  EXPECT_EQ(baseline.settings.text("names"), "a,b");
  EXPECT_EQ(baseline.settings.find("strategy")->origin, "own.json: baseline");
  EXPECT_EQ(baseline.study.kind, StudyKind::kNone);
  const ExperimentSpec& two = named(specs, "own/family/more/2_gpus");
  EXPECT_EQ(two.settings.text("learning_rate"), "0.5");
  EXPECT_EQ(two.settings.find("learning_rate")->origin, "own.json: more");
  EXPECT_EQ(two.resources.count("gpus_per_node", 1), 2);
  EXPECT_EQ(two.study.kind, StudyKind::kStrong);
  EXPECT_EQ(two.study.baseline, "own/family/baseline");
  EXPECT_EQ(named(specs, "own/family/more/4_gpus").settings.text("learning_rate"), "9");
}

TEST(CatalogueFile, PresetsChangeTheirLevelAndYieldToInnerOnes) {
  const CatalogueFile file = read_catalogue_file(kFamily, "own.json", "code");
  const std::vector<ExperimentSpec>& specs = file.experiments;
  EXPECT_FALSE(named(specs, "own/family/baseline").settings.has("fp16"));
  EXPECT_EQ(named(specs, "own/family/more/2_gpus").settings.text("learning_rate"), "7");
  EXPECT_EQ(named(specs, "own/family/more/2_gpus").settings.find("learning_rate")->origin,
            "own.json: more, preset code");
  EXPECT_EQ(named(specs, "own/family/more/4_gpus").settings.text("learning_rate"), "9");
  EXPECT_EQ(file.presets, (std::vector<std::string>{"guide", "code"}));
}

TEST(CatalogueFile, ExpandsSweepsAndRepeats) {
  const auto specs = read_catalogue_file(
                         R"({"tessera_experiments": 1, "family": "own", "job": "gpt-qa", "experiments": {
         "s": {"sweep": {"learning_rate": [1e-5, 0.1], "bf16": [true]}, "repeats": 2}}})",
                         "own.json", "guide")
                         .experiments;
  ASSERT_EQ(specs.size(), 4U);
  EXPECT_EQ(specs[0].name, "own/s/learning_rate=1e-05,bf16=true/repeat_1");
  EXPECT_EQ(specs[3].name, "own/s/learning_rate=0.1,bf16=true/repeat_2");
  EXPECT_EQ(specs[3].settings.text("learning_rate"), "0.1");
  EXPECT_EQ(specs[3].repeat, 2);
}

TEST(CatalogueFile, RefusesMistakesWithTheirPlace) {
  const auto message = [](const std::string& text) {
    return message_of([&] { read_catalogue_file(text, "own.json", "guide"); });
  };
  const std::string head = R"({"tessera_experiments": 1, "family": "own", "job": "x", )";
  EXPECT_EQ(message("[]"), "own.json:1:1: the file: expected an object, found an array");
  EXPECT_EQ(message("{}"), "own.json: no file of experiments: \"tessera_experiments\": 1 is missing");
  EXPECT_TRUE(contains(message(R"({"tessera_experiments": 2})"), "this program reads version 1"));
  EXPECT_TRUE(contains(message(head + R"("experiments": {}})"), "declares no experiment"));
  EXPECT_TRUE(contains(message(head + R"("setings": {}})"), "setings: unknown key; did you mean \"settings\"?"));
  EXPECT_TRUE(contains(message(head + R"("resources": {"gpus": 1}, "experiments": {"a": {}}})"),
                       "resources.gpus: unknown key"));
  EXPECT_TRUE(contains(message(head + R"("experiments": {"../a": {}}})"), "names are made of"));
  EXPECT_TRUE(contains(message(head + R"("experiments": {"a": {"repeats": 0}}})"),
                       "experiments.a.repeats: expected a whole number from 1 to 1000"));
  EXPECT_TRUE(contains(message(head + R"("study": {"kind": "strange"}, "experiments": {"a": {}}})"),
                       "study.kind: expected a kind of study"));
  EXPECT_TRUE(contains(message(R"({"tessera_experiments": 1, "family": "own", "experiments": {"a": {}}})"),
                       "\"job\" is missing"));
  EXPECT_TRUE(contains(message("{\n  \"a\": 1,, // c\n}"), "own.json:2:"));
}

}  // namespace
}  // namespace tessera
