#include "results/page/page.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "core/file.h"
#include "core/host.h"
#include "record/record_file.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

constexpr const char* kNasty = "<script>alert(\"1\")</script>";

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t number = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++number;
  return number;
}

bool has(const std::string& page, const std::string& part) {
  return page.find(part) != std::string::npos;
}

RunRecord finished_run(const std::string& folder, double ranks, double speed, double runtime) {
  RunRecord run;
  run.file = "/runs/" + folder + "/run.json";
  run.status = "finished";
  run.started = "2026-11-15T09:00:00Z";
  run.updated = "2026-11-15T09:10:00Z";
  run.facts = {{"job", "bloom-qa"}, {"strategy", "zero2"}, {"ranks", ranks}, {"device", "cuda"}};
  run.summary = {{"train_samples_per_second", speed}, {"train_runtime", runtime}};
  run.devices = {"NVIDIA H200"};
  run.total_steps = 20;
  run.metrics = {{{"step", std::int64_t{10}}, {"time", 1794733206.0}, {"loss", 1.5}},
                 {{"step", std::int64_t{20}}, {"time", 1794733212.25}, {"loss", 1.25}}};
  return run;
}

std::string page_of(std::vector<RunRecord> runs) {
  PageInput input;
  input.title = "Runs";
  input.generated_by = "tessera";
  input.runs = std::move(runs);
  input.folder = "/runs";
  input.now = 1794740000;  // 2026-11-15T10:53:20Z
  return make_page(input);
}

TEST(Page, NamesRunsThatFailedBeforeTheyLeftARecord) {
  PageInput input;
  input.runs = {finished_run("a", 1, 10, 100)};
  input.unrecorded = {{"ddp/baseline 002", std::string("no such file ") + kNasty}};
  const std::string page = make_page(input);
  EXPECT_TRUE(has(page, "2 runs: 1 finished, 1 failed")) << page.substr(0, 4000);
  EXPECT_TRUE(has(page, "What did not finish</h3><ul><li>ddp/baseline 002 "));
  EXPECT_TRUE(has(page, " before it left a record: no such file &lt;script&gt;"));
  EXPECT_FALSE(has(page, kNasty));
}

TEST(Page, ShowsTheNumbersOfRunJson) {
  const TestFolder folder;
  write_file_atomically(folder / "run.json", R"({"format": 2, "status": "finished", "exit_reason": "",
    "started": "2026-11-15T09:00:00Z", "updated": "2026-11-15T09:10:00Z", "settings": {}, "versions": {}, "hosts": [],
    "devices": [], "commit": "", "command": [], "total_steps": 30, "checkpoints": [],
    "metrics": [{"step": 10, "time": 1794733206.5, "loss": 2.8125, "learning_rate": 4.838709677419355e-05},
                {"step": 20, "time": 1794733212.25, "loss": 1.3371, "learning_rate": 1e-05},
                {"step": 30, "time": 1794733218, "eval_loss": 1.4142135623730951}],
    "summary": {"train_samples_per_second": 75.197, "train_runtime": 33.1915, "train_loss": 1.5763489217},
    "planned_memory": {"parameters": 1118429184}, "facts": {"global_batch": 16, "ranks": 1, "device": "cuda"},
    "ranks": [{"rank": 0, "numbers": {"allocated_peak_MB": 11380.25, "used_peak_MB": 13987.125},
      "parts": [{"name": "forward", "mean_ms": 61.703125, "std_ms": 1}],
      "series": {"period_seconds": 5, "start_seconds": -1, "allocated_MB": [100.5, null, 11000.25, 11001]}}]})");
  const std::string page = page_of({read_run_record(folder.path())});
  for (const char* number : {"75.197", "33.1915", "1.5763489217", "1.4142135623730951", "11380.25", "13987.125",
                             "1118429184", "16", "61.703125"}) {
    EXPECT_TRUE(has(page, fmt::format("data-v=\"{}\"", number))) << number;
  }
  EXPECT_TRUE(has(page, "points=\"10,2.8125 20,1.3371\""));      // loss by step
  EXPECT_TRUE(has(page, "points=\"6.5,2.8125 12.25,1.3371\""));  // loss by time, from 09:00:00 on
  EXPECT_TRUE(has(page, "data-v=\"10,4.838709677419355e-05 20,1e-05\""));
  EXPECT_TRUE(has(page, "points=\"4,100.5 4,100.5\""));       // before the gap; the timer began 1 s before the run
  EXPECT_TRUE(has(page, "points=\"14,11000.25 19,11001\""));  // every 5 s
}

TEST(Page, TakesUserTextForTextEverywhere) {
  RunRecord run = finished_run(kNasty, 2, 10, 100);
  run.status = "failed";
  run.exit_reason = run.commit = kNasty;
  run.settings = {{kNasty, kNasty, kNasty}, {"run_name", kNasty, "command line"}};
  run.facts.set("strategy", kNasty);
  run.facts.set(kNasty, kNasty);
  run.summary.set(kNasty, 1.0);
  run.versions = {{"torch", kNasty}};
  run.hosts = run.devices = run.command = run.gpu_logs = run.traces = {kNasty};
  run.collectives = {{kNasty, kNasty, 1, 1, 1}};
  run.ranks = {{0, kNasty, kNasty, {{"step_mean_ms", 5.0}}, {{kNasty, 1, 1}}, {}},
               {1, kNasty, kNasty, {{"step_mean_ms", 6.0}}, {{kNasty, 1, 1}}, {}}};
  PageInput input;
  input.title = input.generated_by = kNasty;
  input.runs = {run, finished_run(std::string("b/") + kNasty, 1, 5, 100)};
  input.tables = {{kNasty, {kNasty}, {{kNasty, kNasty}}, {kNasty}}};
  input.questions = {{kNasty, kNasty, kNasty}};
  input.passed_over = {kNasty};
  input.gpu_logs = {{0, kNasty, {{0, 1}, {1, 2}}, 10}};
  input.host_logs = {{0, kNasty, {{0, 1}, {1, 2}}}};
  input.cpu_logs = {{0, kNasty, {{0, 3}, {1, 4}}}};
  const std::string page = make_page(input);
  EXPECT_EQ(occurrences(page, "<script"), 1u);  // our own
  EXPECT_EQ(occurrences(page, "</script"), 1u);
  EXPECT_FALSE(has(page, "alert(\""));
  EXPECT_GT(occurrences(page, "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;"), 20u);
}

TEST(Page, AsksNobodyForAnything) {
  RunRecord run = finished_run("a", 2, 10, 100);
  run.gpu_logs = {"gpu_memory/7/gpu_memory_log.csv", "/elsewhere/log.csv"};
  run.traces = {"javascript:alert(1)"};
  const std::string page = page_of({run});
  for (const char* request : {"http:", "https:", " src=", "url(", "@import", "fetch(", "XMLHttpRequest", "import("}) {
    EXPECT_FALSE(has(page, request)) << request;
  }
  const std::regex link("href=\"([^\"]*)\"");
  std::size_t num_links = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), link), end; at != end; ++at, ++num_links) {
    const std::string target = (*at)[1];
    EXPECT_TRUE(target.starts_with("#") || target.starts_with("./") || target.starts_with("../") || target == "data:,")
        << target;
  }
  EXPECT_GT(num_links, 8u);
  EXPECT_TRUE(has(page, "href=\"./a/gpu_memory/7/gpu_memory_log.csv\""));
  EXPECT_TRUE(has(page, "href=\"../elsewhere/log.csv\""));
  EXPECT_TRUE(has(page, "href=\"./a/javascript%3Aalert%281%29\""));
  EXPECT_TRUE(has(page, "default-src 'none'"));  // and the browser is told to refuse
}

TEST(Page, SaysWhatRanWhatWasBestAndWhatFailed) {
  RunRecord slow = finished_run("slow", 1, 10, 400), fast = finished_run("fast", 4, 32, 125);
  slow.summary.set("max_mem_alloc_MB", 30720.0);
  fast.summary.set("max_mem_alloc_MB", 10240.0);
  RunRecord failed = finished_run("failed", 2, 99, 1);  // not the fastest: it did not finish
  failed.status = "failed";
  failed.exit_reason = "out of memory: step 20\nthe plan of a step";
  RunRecord killed = finished_run("killed", 2, 98, 1);
  killed.status = "running";
  RunRecord running = finished_run("running", 2, 97, 1);
  running.status = "running";
  running.updated = "2026-11-15T10:53:00Z";
  const std::string page = page_of({slow, fast, failed, killed, running});
  EXPECT_TRUE(has(page, "5 runs: 2 finished, 1 running, 1 killed, 1 failed, started 2026-11-15T09:00:00Z."));
  EXPECT_TRUE(has(page, "bloom-qa: 5 runs with zero2 on 1 to 4 GPUs (NVIDIA H200)."));
  EXPECT_TRUE(has(page,
                  "Fastest: <a href=\"#run-1\">fast</a> with <b data-v=\"32\">32 samples/s</b> on 4 GPUs (8 per GPU), "
                  "3.20 times the slowest, <a href=\"#run-0\">slow</a> (10 samples/s)."));
  EXPECT_TRUE(has(page,
                  "Least memory: <a href=\"#run-1\">fast</a> with a peak of <b data-v=\"10240\">10 GiB</b> per rank "
                  "(allocated by tensors); most: <a href=\"#run-0\">slow</a> with 30 GiB."));
  EXPECT_TRUE(has(page, "at step 20 of 20: out of memory: step 20</li>"));
  EXPECT_TRUE(has(page, "no sign of life since 2026-11-15T09:10:00Z</li>"));
}

TEST(Page, ASingleRunIsNotTheBestOfAnything) {
  RunRecord run = finished_run("alone", 4, 32, 125);
  run.summary.set("max_mem_alloc_MB", 10240.0);
  const std::string page = page_of({run});
  EXPECT_TRUE(has(page, "<li>Speed: <b data-v=\"32\">32 samples/s</b> on 4 GPUs (8 per GPU).</li>"));
  EXPECT_TRUE(has(page, "<li>Memory: a peak of <b data-v=\"10240\">10 GiB</b> per rank (allocated by tensors).</li>"));
  EXPECT_FALSE(has(page, "Fastest") || has(page, ">Comparison<"));
}

TEST(Page, ShowsTheQualityOfAnswersAsItGrows) {
  RunRecord run = finished_run("a", 1, 10, 100);
  run.metrics = {{{"step", std::int64_t{5}}, {"time", 1794733206.0}, {"eval_f1", 0.25}},
                 {{"step", std::int64_t{10}}, {"time", 1794733212.0}, {"eval_f1", 0.5}, {"eval_exact_match", 0.125}}};
  const std::string page = page_of({run});
  EXPECT_TRUE(has(page, "5,0.25 10,0.5"));
  EXPECT_FALSE(has(page, "10,0.125")) << "one value is no curve";
}

TEST(Page, ShowsHowRunsScale) {
  const std::string page =
      page_of({finished_run("4", 4, 36, 100), finished_run("1", 1, 10, 400), finished_run("2", 2, 19, 200)});
  EXPECT_TRUE(has(page, "data-v=\"1,10 2,19 4,36\""));   // throughput
  EXPECT_TRUE(has(page, "data-v=\"1,10 2,20 4,40\""));   // ideal
  EXPECT_TRUE(has(page, "data-v=\"1,1 2,1.9 4,3.6\""));  // speed-up
  EXPECT_TRUE(has(page, "data-v=\"1,1 2,2 4,4\""));
  EXPECT_FALSE(has(page, "weak scaling"));
}

TEST(Page, SpeedUpIsAgainstTheBaseline) {
  RunRecord single = finished_run("single", 1, 8, 500), sharded = finished_run("1", 1, 6, 600);
  RunRecord two = finished_run("2", 2, 12, 300), four = finished_run("4", 4, 20, 200),
            apart = finished_run("2x2", 4, 16, 250);
  single.facts.set("strategy", "single");
  apart.facts.set("nodes", std::int64_t{2});
  const std::vector<RunRecord> runs = {single, sharded, two, four, apart};
  const std::string page = page_of(runs);
  EXPECT_TRUE(has(page, "data-v=\"1,1 2,1.5 4,2.5\""));  // 12 / 8, 20 / 8: not against 6 samples/s
  EXPECT_TRUE(has(page, "data-v=\"1,1 4,2\""));          // across nodes: a series of its own
  PageInput input;
  input.runs = runs;
  input.baselines = {{"mine/2", "mine/1"}};
  input.runs[2].facts.set("experiment", "mine/2");
  input.runs[1].facts.set("experiment", "mine/1");
  EXPECT_TRUE(has(make_page(input), "data-v=\"1,1 2,2 "));  // the named one: 12 / 6
}

TEST(Page, ShowsBytesAgainstTheMinimum) {
  RunRecord run = finished_run("a", 2, 10, 100);
  run.facts.set("strategy", "full_shard");
  run.facts.set("accumulation", std::int64_t{4});
  // 20 updates of 4 micro-steps: 8 gathers each, and 10 by an evaluation; the last unit is kept: 4.
  run.collectives = {{"all_gather", "h.0", 170, 170 << 20, 0},
                     {"all_gather", "h.1", 90, 90 << 20, 0},
                     {"all_gather", "gradient norm", 20, 20, 0}};
  const std::string page = page_of({run});
  EXPECT_TRUE(has(page, "Collectives of rank 0, the largest first"));  // NCCL's have no seconds
  EXPECT_TRUE(has(page, "<td>h.0</td><td class=\"num\">170</td><td class=\"num\">170</td><td class=\"num\">160</td>"));
  EXPECT_TRUE(has(page, "<td>h.1</td><td class=\"num\">90</td><td class=\"num\">90</td><td class=\"num\">80</td>"));
}

TEST(Page, ShowsEfficiencyUnderWeakScaling) {
  RunRecord base = finished_run("2", 2, 10, 100), more = finished_run("4", 4, 10, 125);
  for (RunRecord* run : {&base, &more}) run->facts.set("experiment", "fsdp/custom_model/weak_scaling/x");
  const std::string page = page_of({base, more});
  EXPECT_TRUE(has(page, "data-v=\"2,100 4,80\""));   // baseline / current x 100 = 100 / 125 x 100
  EXPECT_TRUE(has(page, "data-v=\"2,100 4,125\""));  // runtime
  EXPECT_FALSE(has(page, "Speed-up"));
}

TEST(Page, NeverMixesKindsOfMemory) {
  RunRecord run = finished_run("a", 1, 10, 100);
  run.ranks = {{0,
                "n",
                "H200",
                {{"capacity_MB", 20480.0}},
                {},
                {5, {9216, 9216}, {10240, 10240}, {11264, 11264}, {}, {90, 91}}}};
  PageInput input;
  input.runs = {run};
  input.gpu_logs = {{0, "n GPU 0", {{0, 12288}, {5, 12289}}, 20480}};
  input.host_logs = {{0, "n", {{0, 2048.5}, {5, 4096}}}};
  input.cpu_logs = {{0, "n", {{0, 100}, {5, 250}}}};
  const std::string page = make_page(input);
  const auto plot = [&](const std::string& title) {
    const std::size_t at = page.find("aria-label=\"" + title);
    EXPECT_NE(at, std::string::npos) << title;
    return at == std::string::npos ? "" : page.substr(at, page.find("</svg>", at) - at);
  };
  EXPECT_TRUE(has(plot("GPU memory allocated (torch&#39;s allocator)"), "points=\"5,9216 10,9216\""));
  EXPECT_TRUE(has(plot("GPU memory reserved (torch&#39;s allocator)"), "points=\"5,10240 10,10240\""));
  EXPECT_TRUE(has(plot("GPU memory used (NVML, all processes)"), "points=\"5,11264 10,11264\""));
  EXPECT_TRUE(has(plot("GPU memory used (GPU memory log)"), "points=\"0,12288 5,12289\""));
  EXPECT_TRUE(has(plot("GPU memory used (GPU memory log)"), "points=\"0,20480 5,20480\""));  // capacity
  EXPECT_TRUE(has(plot("Host memory (CPU memory log)"), "points=\"0,2048.5 5,4096\""));
  EXPECT_TRUE(has(plot("CPU utilisation (CPU memory log)"), "points=\"0,100 5,250\""));
  EXPECT_TRUE(has(plot("GPU utilisation"), "points=\"5,90 10,91\""));
}

TEST(Page, OfARunWithLittleIsStillAPage) {
  RunRecord bare;
  bare.file = "/runs/a/run.json";
  bare.status = "running";
  const std::string page = page_of({bare});
  EXPECT_TRUE(has(page, "1 run: 1 running."));
  EXPECT_TRUE(has(page, "id=\"run-0\""));
  EXPECT_FALSE(has(page, ">nan<"));
}

TEST(Page, OfManyRunsHasThemAllInTheTable) {
  std::vector<RunRecord> runs;
  for (int i = 0; i < 150; ++i) runs.push_back(finished_run(fmt::format("run_{}", i), 1, 10 + i, 100));
  const std::string page = page_of(std::move(runs));
  EXPECT_EQ(occurrences(page, "<tr data-state="), 150u);
  EXPECT_EQ(occurrences(page, "<details class=\"run\""), kMostRunSections);
  EXPECT_TRUE(has(page, "The first 100 of 150 runs have a section here"));
  EXPECT_TRUE(has(page, "<th scope=\"row\"><a href=\"#run-99\">run_99</a></th>"));
  EXPECT_TRUE(has(page, "<th scope=\"row\">run_100</th>"));
}

TEST(Page, OfLongRunsIsSmallAndQuick) {
  std::vector<RunRecord> runs;
  for (int i = 0; i < 20; ++i) {
    RunRecord run = finished_run(fmt::format("run_{}", i), 1, 10, 100);
    run.metrics.clear();
    for (int step = 1; step <= 1000; ++step) {
      run.metrics.push_back({{"step", std::int64_t{step}},
                             {"time", 1794733200.0 + step},
                             {"loss", 1 + 1.0 / step},
                             {"grad_norm", std::sin(step)},
                             {"learning_rate", 5e-8 * step}});
    }
    runs.push_back(std::move(run));
  }
  const double begin = steady_seconds();
  const std::string page = page_of(std::move(runs));
  EXPECT_LT(steady_seconds() - begin, 2);  // bench/page_bench measures; this finds what is far off
  EXPECT_LT(page.size(), 1'500'000u);
}

}  // namespace
}  // namespace tessera
