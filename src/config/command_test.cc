#include "config/command.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

struct RunsSettings {
  std::vector<std::string> words;
  std::string metric, format;
  bool cache = false, all = false;
  int limit = 0;
};

void declare(Schema& schema, RunsSettings& s) {
  schema.positionals("ls|show DIR...: folders of runs", &s.words);
  schema.group("Last");
  schema.boolean("all", &s.all, "old ones too");
  schema.group("");
  schema.text("metric", &s.metric, "only this one", {.environment = {"METRIC"}});
  schema.text("format", &s.format, "", {.preset = "text", .choices = {"text", "md"}});
  schema.boolean("cache", &s.cache, "", {.preset = "true"});
  schema.integer("limit", &s.limit, "", {.aliases = {"most"}, .short_name = 'n'});
  schema.boolean("secret_habit", &s.all, "", {.is_hidden = true});
}

int run_runs(Schema&, RunsSettings& s) {
  return s.limit;
}

void read_limit(Schema& schema, RunsSettings&) {
  schema.read_json({{"limit", 5}}, "a file");
}

TEST(Command, IsDescribedWithoutARun) {
  const Command command = with_settings<RunsSettings>({.name = "runs", .summary = "recorded runs"}, declare, run_runs);
  const Schema schema = command.schema();
  EXPECT_EQ(schema.usage(), "tessera runs [settings] ls|show DIR...");
  EXPECT_EQ(schema.verbs(), (std::vector<std::string>{"ls", "show"}));
  EXPECT_TRUE(schema.help_text().starts_with("tessera runs: recorded runs\n"));
  std::vector<std::vector<std::string>> names;
  for (const DescribedOption& option : schema.options()) names.push_back(option.names);
  EXPECT_EQ(names, (std::vector<std::vector<std::string>>{{"--all"},
                                                          {"--metric"},
                                                          {"--format"},
                                                          {"--cache", "--no_cache"},
                                                          {"--limit", "-n", "--most"},
                                                          {"-h", "--help"},
                                                          {"--print_config"}}));
}

TEST(Command, OptionsSayWhatTheyTake) {
  const Schema schema = with_settings<RunsSettings>({.name = "runs"}, declare, run_runs).schema();
  const std::vector<DescribedOption> options = schema.options();
  using Takes = DescribedOption::Takes;
  EXPECT_EQ(options[0].takes, Takes::kNothing);
  EXPECT_EQ(options[0].help, "old ones too");
  EXPECT_EQ(options[1].takes, Takes::kText);
  EXPECT_EQ(options[1].variables, std::vector<std::string>{"METRIC"});
  EXPECT_EQ(options[2].takes, Takes::kValue);
  EXPECT_EQ(options[2].values, (std::vector<std::string>{"text", "md"}));
  EXPECT_EQ(options[4].takes, Takes::kValue);
}

TEST(Command, RunsWithItsSettings) {
  const Command command = with_settings<RunsSettings>({.name = "runs"}, declare, run_runs, read_limit);
  EXPECT_EQ(command.run({"ls"}), 5);
  EXPECT_EQ(command.run({"ls", "-n", "7"}), 7);
  testing::internal::CaptureStdout();
  EXPECT_EQ(command.run({"ls", "--print_config"}), 0);
  EXPECT_NE(testing::internal::GetCapturedStdout().find("a file"), std::string::npos);
}

}  // namespace
}  // namespace tessera
