#include "results/comparison.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "record/find_runs.h"
#include "record/run_record.h"

namespace tessera {
namespace {

std::vector<ComparedSide> sides_of(const std::vector<std::string>& names) {
  std::vector<ComparedSide> sides;
  for (const std::string& name : names) {
    const std::string folder = std::string(TESSERA_TEST_DATA_FOLDER) + "/runs/other/" + name;
    sides.push_back({name, find_runs({folder}, RunDetail::kBrief).runs});
  }
  return sides;
}

const double kNextDay = *seconds_of_utc("2026-11-16T00:00:00Z");

const ComparedMetric& figure_of(const Comparison& comparison, const std::string& name) {
  for (const ComparedMetric& compared : comparison.metrics) {
    if (compared.metric.name == name) return compared;
  }
  throw std::runtime_error("no figure " + name);
}

TEST(CompareRuns, RepeatsAreAGroupWithMeanAndSpread) {
  const auto sides = sides_of({"base", "slow"});
  const Comparison comparison = compare_runs(sides, "", {}, kNextDay);
  ASSERT_EQ(comparison.groups.size(), 2u);
  EXPECT_EQ(comparison.groups[0].name, "base");
  EXPECT_EQ(comparison.groups[0].runs.size(), 3u);  // seeds 1, 2, 3
  const ComparedMetric& speed = figure_of(comparison, "samples_per_second");
  EXPECT_EQ(speed.metric.better, Better::kHigher);
  EXPECT_DOUBLE_EQ(speed.values[0]->mean, 100);     // of 100, 104, 96
  EXPECT_DOUBLE_EQ(speed.values[0]->deviation, 4);  // sqrt((0 + 16 + 16) / 2)
  EXPECT_DOUBLE_EQ(speed.values[1]->mean, 91);      // of 90, 92
  EXPECT_NEAR(*speed.change_percent(1), -9, 1e-12);
  EXPECT_FALSE(speed.is_within_spread(1));
  EXPECT_FALSE(speed.change_percent(0).has_value());
  const ComparedMetric& loss = figure_of(comparison, "train_loss");
  EXPECT_EQ(loss.metric.better, Better::kLower);
  EXPECT_NEAR(*loss.change_percent(1), 5, 1e-9);  // 2.0 to 2.1
  EXPECT_TRUE(loss.is_within_spread(1));          // 0.1 apart; deviations 0.1 and 0.14
  EXPECT_NEAR(*figure_of(comparison, "allocated_peak_MB").change_percent(1), 10, 1e-12);  // 1000 to 1100
  EXPECT_NEAR(*figure_of(comparison, "backward_ms").change_percent(1), 25, 1e-12);        // 20 to 25
}

TEST(CompareRuns, NamesTheSettingsThatDiffer) {
  const auto sides = sides_of({"base", "slow"});
  const Comparison comparison = compare_runs(sides, "", {}, kNextDay);
  std::vector<std::string> names;
  for (const DifferingSetting& setting : comparison.settings) names.push_back(setting.name);
  EXPECT_EQ(names, (std::vector<std::string>{"commit", "strategy"}));
  EXPECT_EQ(comparison.settings[1].values, (std::vector<std::string>{"zero2", "zero3"}));
}

TEST(CompareRuns, AlikeRunsAreComparedByFolder) {
  const auto sides = sides_of({"base/1", "base/2"});
  const Comparison comparison = compare_runs(sides, "", {}, kNextDay);
  ASSERT_EQ(comparison.groups.size(), 2u);
  EXPECT_NEAR(*figure_of(comparison, "samples_per_second").change_percent(1), 4, 1e-12);
  EXPECT_TRUE(comparison.settings.empty());
  const auto three = sides_of({"base/1", "base/2", "slow"});  // folders that are named are never repeats of each other
  EXPECT_EQ(compare_runs(three, "", {}, kNextDay).groups.size(), 3u);
}

TEST(RunGate, FailsBeyondTheLimitOnly) {
  const auto sides = sides_of({"base", "slow"});
  const auto failures = [&](GateLimits limits) { return compare_runs(sides, "", limits, kNextDay).gate_failures; };
  EXPECT_TRUE(failures({9.0, std::nullopt}).empty());
  EXPECT_TRUE(failures({std::nullopt, 10.0}).empty());
  EXPECT_EQ(failures({8.9, 5.0}),
            (std::vector<std::string>{
                "slow: 91.000 samples/s, 9.0 % slower than base (100.000); at most 8.9 % is allowed",
                "slow: allocated GPU memory peaks at 1100 MiB, 10.0 % more than base (1000); at most 5 % is allowed"}));
  const auto faster = sides_of({"slow", "base"});
  EXPECT_TRUE(compare_runs(faster, "", {0.0, 0.0}, kNextDay).gate_failures.empty());
}

TEST(RunGate, DoesNotPassWhatItCannotJudge) {
  const auto sides = sides_of({"base", "killed"});
  const Comparison comparison = compare_runs(sides, "", {60.0, 5.0}, kNextDay);  // 50 of 100 samples/s
  EXPECT_EQ(comparison.gate_failures.size(), 2u);
  EXPECT_NE(comparison.gate_failures[0].find("killed: no word since 2026-11-15T09:04:00Z"), std::string::npos);
  EXPECT_EQ(comparison.gate_failures[1], "killed: memory cannot be judged: killed has no peak of allocated GPU memory");
  ASSERT_EQ(comparison.notes.size(), 1u);
  const double then = *seconds_of_utc("2026-11-15T09:05:00Z");  // still running
  EXPECT_EQ(compare_runs(sides, "", {60.0, std::nullopt}, then).gate_failures.size(), 0u);
  const auto alone = sides_of({"base"});
  EXPECT_EQ(compare_runs(alone, "", {5.0, std::nullopt}, kNextDay).gate_failures.size(), 1u);
}

TEST(RunGate, ARecordThatCannotBeReadOrAnUnknownStatusDoesNotPass) {
  auto sides = sides_of({"base", "slow"});
  const auto failures = [&] { return compare_runs(sides, "", {50.0, 50.0}, kNextDay).gate_failures; };
  EXPECT_TRUE(failures().empty());
  sides[1].problems = {"slow/3/run.json:9:1: expected a value"};
  EXPECT_EQ(failures(), std::vector<std::string>{"a run cannot be judged: slow/3/run.json:9:1: expected a value"});
  EXPECT_TRUE(compare_runs(sides, "", {}, kNextDay).gate_failures.empty()) << "there is no gate";
  sides[1].problems.clear();
  sides[1].runs[0].status = "flying";
  ASSERT_EQ(failures().size(), 1u);
  EXPECT_NE(failures()[0].find("/slow/1: cannot be judged: its status 'flying' is none that tessera knows"),
            std::string::npos)
      << failures()[0];
}

// Two kinds of runs, before and after: each is judged against its own kind, and a regression of one is not averaged
// away.
TEST(RunGate, JudgesEachKindOfRunAgainstItsOwn) {
  auto sides = sides_of({"base/1", "base/1"});
  for (ComparedSide& side : sides) {
    side.runs.push_back(side.runs.front());
    side.runs.back().facts.set("strategy", std::string("zero3"));
    std::erase_if(side.runs.back().settings, [](const RecordedSetting& setting) { return setting.name == "strategy"; });
  }
  const auto set_speed = [](RunRecord& run, double speed) {
    run.metrics.push_back({{"train_samples_per_second", speed}});
  };
  set_speed(sides[0].runs[0], 100);
  set_speed(sides[0].runs[1], 10);
  set_speed(sides[1].runs[0], 100);
  set_speed(sides[1].runs[1], 10);
  const auto failures = [&] { return compare_runs(sides, "", {5.0, std::nullopt}, kNextDay).gate_failures; };
  EXPECT_TRUE(failures().empty()) << failures().front();
  set_speed(sides[1].runs[1], 5);
  EXPECT_EQ(failures().size(), 1u);
  set_speed(sides[1].runs[1], std::nan(""));
  EXPECT_EQ(failures().size(), 1u) << "what is not a number cannot pass";
  set_speed(sides[1].runs[1], 10);
  sides[1].runs[0].status = "interrupted";
  EXPECT_EQ(failures().size(), 1u);
}

TEST(RunGate, PercentagesHaveTheirSign) {
  EXPECT_EQ(parse_percentage("max_slowdown", "5%"), 5);
  EXPECT_EQ(parse_percentage("max_slowdown", " 2.5 %"), 2.5);
  for (const char* text : {"5", "0.05", "-1%", "%", "five%", ""}) {
    EXPECT_THROW(parse_percentage("max_slowdown", text), UsageError) << text;
  }
}

TEST(CompareRuns, OneMetricMayBeAnyLoggedName) {
  const auto sides = sides_of({"base", "slow"});
  const Comparison comparison = compare_runs(sides, "learning_rate", {}, kNextDay);
  ASSERT_EQ(comparison.metrics.size(), 1u);
  EXPECT_EQ(comparison.metrics[0].metric.better, Better::kUnknown);
  EXPECT_EQ(comparison_json(comparison, {}).at("figures")[0].at("better"), nullptr);
  EXPECT_THROW(compare_runs(sides, "sampels_per_second", {}, kNextDay), UsageError);
  const auto one = sides_of({"base/1"});
  EXPECT_THROW(compare_runs(one, "", {}, kNextDay), UsageError);
}

TEST(CompareRuns, AMetricMayHaveItsNameInMetricsCsv) {
  auto sides = sides_of({"base/1", "slow/1"});
  for (ComparedSide& side : sides) {
    const double value = &side == &sides.front() ? 2 : 3;
    side.runs[0].metrics = {
        {{"step", std::int64_t{1}}, {"loss", value}, {"grad_norm", value}, {"eval_loss", 2 * value}},
        {{"step", std::int64_t{1}}, {"train_loss", 7.0}}};
  }
  const auto compared = [&](const std::string& name) { return compare_runs(sides, name, {}, kNextDay).metrics.at(0); };
  EXPECT_EQ(compared("train/loss").values[1]->mean, 3) << "of a step, not train_loss, which is the run's";
  EXPECT_EQ(compared("train/loss").metric.better, Better::kLower);
  EXPECT_EQ(compared("eval/loss").metric.label, "eval loss");
  EXPECT_EQ(compared("eval/loss").values[1]->mean, 6);
  const Comparison norm = compare_runs(sides, "train/grad_norm", {}, kNextDay);
  EXPECT_NE(comparison_text(norm, {}).find("3.0000  +50.0 %\n"), std::string::npos) << comparison_text(norm, {});
}

TEST(CompareRuns, NoPercentageOfABaselineThatIsShownAsZero) {
  auto sides = sides_of({"base/1", "slow/1"});
  const auto change = [&](const std::string& part, double before, double after) {
    sides[0].runs[0].ranks[0].parts = {{part, before, 0}};
    sides[1].runs[0].ranks[0].parts = {{part, after, 0}};
    for (ComparedSide& side : sides) side.runs[0].ranks.resize(1);
    return compare_runs(sides, part + "_ms", {}, kNextDay).metrics.at(0).change_percent(1);
  };
  EXPECT_FALSE(change("communication", 0.0004, 13.12).has_value());
  EXPECT_NEAR(change("communication", 0.01, 0.02).value(), 100, 1e-9);
  sides[0].runs[0].metrics = {{{"learning_rate", 1e-5}}};
  sides[1].runs[0].metrics = {{{"learning_rate", 2e-5}}};
  const Comparison rates = compare_runs(sides, "learning_rate", {}, kNextDay);
  EXPECT_NE(comparison_text(rates, {}).find("0.00001000  0.00002000  +100.0 %\n"), std::string::npos)
      << comparison_text(rates, {});
}

TEST(CompareRuns, AsTextSaysDirectionAndVerdict) {
  const auto sides = sides_of({"base", "slow"});
  const GateLimits limits{5.0, std::nullopt};
  const Comparison comparison = compare_runs(sides, "samples_per_second", limits, kNextDay);
  EXPECT_EQ(comparison_text(comparison, limits),
            "baseline base: 3 runs, repeats of one another\n"
            "         slow: 2 runs, repeats of one another\n\n"
            "settings that differ\n"
            "  setting   base     slow\n"
            "  commit    c0ffee1  c0ffee2\n"
            "  strategy  zero2    zero3\n\n"
            "figures: mean \u00b1 standard deviation over repeats, and the change against the baseline\n"
            "  figure                      better  base             slow\n"
            "  training speed (samples/s)  higher  100.000 \u00b1 4.000  91.000 \u00b1 1.414  -9.0 % worse\n\n"
            "gate failed\n"
            "  slow: 91.000 samples/s, 9.0 % slower than base (100.000); at most 5 % is allowed\n");
  const Json json = comparison_json(comparison, limits);
  EXPECT_EQ(json.at("gate").at("passed"), false);
  EXPECT_EQ(json.at("figures")[0].at("better"), "higher");
  EXPECT_NEAR(json.at("figures")[0].at("change_percent")[1].get<double>(), -9, 1e-12);
}

}  // namespace
}  // namespace tessera
