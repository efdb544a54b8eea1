// Every table's cells, held against numbers worked out by hand from tests/data/runs/experiments.
#include <gtest/gtest.h>

#include "core/error.h"
#include "record/find_runs.h"
#include "record/run_record.h"
#include "results/tables/experiment_table.h"
#include "support/catalogue_experiments.h"
#include "support/contains.h"
#include "support/message_of.h"

namespace tessera {
namespace {

using Texts = std::vector<std::string>;

const double kAfterwards = *seconds_of_utc("2026-11-16T00:00:00Z");

const std::vector<RunRecord>& recorded_experiments() {
  static const FoundRuns found =
      find_runs({std::string(TESSERA_TEST_DATA_FOLDER) + "/runs/experiments"}, RunDetail::kWhole);
  return found.runs;
}

Table filled(const std::string& name, const std::vector<RunRecord>& runs = recorded_experiments(),
             const std::vector<NamedRun>& named = {}) {
  const TableSpec spec = find_table(name, builtin_catalogue().tables(), catalogue_experiments());
  return fill_table(spec, choose_rows(spec, catalogue_experiments(), runs, named, kAfterwards));
}

Texts texts_of(const std::vector<TableCell>& cells) {
  Texts texts;
  for (const TableCell& cell : cells) texts.push_back(cell.text.empty() ? "-" : cell.text);
  return texts;
}

Texts headings_of_table(const Table& table) {
  Texts headings;
  for (const TableColumn& column : table.columns) headings.push_back(column_heading(column));
  return headings;
}

ExperimentSpec experiment(const std::string& name, int num_gpus, const Study& study = {}) {
  ExperimentSpec spec;
  spec.name = name;
  spec.family = name.substr(0, name.find('/'));
  spec.study = study;
  spec.resources.set("nodes", "1", "test");
  spec.resources.set("gpus_per_node", std::to_string(num_gpus), "test");
  return spec;
}

std::string below(const Table& table) {
  std::string text;
  for (const std::string& line : reasons_below(table)) text += line + "\n";
  for (const std::string& line : table.notes) text += line + "\n";
  return text;
}

TEST(Tables, FsdpBaseline) {
  const Table table = filled("fsdp/bloom/baseline");
  EXPECT_EQ(headings_of_table(table),
            (Texts{"Setup", "Train Loss", "Eval Loss Epoch 1", "Eval Loss Epoch 2", "Eval Loss Last",
                   "Training Speed (samples/s)", "Evaluation Speed (samples/s)", "Steps per Epoch", "Total Steps",
                   "Memory Allocated mean (MB used, NVML)", "Memory Allocated peak (MB used, NVML)", "GPU mean (%)",
                   "GPU peak (%)"}));
  ASSERT_EQ(table.rows.size(), 1u);
  // 3.9869 is the final train_loss; 11.0402 the eval loss of the last of five epochs.
  EXPECT_EQ(texts_of(table.rows[0]), (Texts{"1 node x 1 GPU", "3.9869", "9.5000", "9.0000", "11.0402", "6.250",
                                            "25.000", "125", "625", "20000", "24576", "80.0", "99.0"}));
}

TEST(Tables, DeepspeedBaseline) {
  const Table table = filled("deepspeed/baseline");
  ASSERT_EQ(table.rows.size(), 1u);
  // (1000 + 26532 + 26532 + 24000) / 4 = 19516; 13536.3 / 6 = 2256.05
  EXPECT_EQ(texts_of(table.rows[0]), (Texts{"1 node x 1 GPU", "2.5000", "2.7500", "2.6250", "2.5625", "5.000", "12.500",
                                            "26532", "19516.00", "26532", "3892", "2256.05", "2145, 2177"}));
  EXPECT_EQ(column_heading(table.columns[7]), "GPU 0 Peak (MiB)");
  EXPECT_EQ(column_heading(table.columns[12]), "CPU Mode (MB)");
}

TEST(Tables, BloomOnSeveralGpus) {
  const Table table = filled("fsdp/bloom/multi_gpu");
  EXPECT_EQ(headings_of_table(table), (Texts{"Setup", "Total GPUs", "Samples/s", "Samples/s Scale (x)", "Runtime (s)",
                                             "Runtime Scale (x)", "Loss", "GPU Memory Allocated (GB used, NVML)"}));
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_EQ(texts_of(table.rows[0]),
            (Texts{"1 node x 1 GPU", "1", "6.250", "1.00", "400.00", "1.00", "3.9869", "24.00"}));
  // 10 / 6.25 and 400 / 250; the larger of 16384 and 18432 MB / 1024
  EXPECT_EQ(texts_of(table.rows[1]),
            (Texts{"1 node x 2 GPUs", "2", "10.000", "1.60", "250.00", "1.60", "4.1000", "18.00"}));
  // It saw 2,000 rows where the baseline saw 2,500: (400 / 2500) / (160 / 2000) = 2, not 400 / 160 = 2.5.
  EXPECT_EQ(texts_of(table.rows[2]),
            (Texts{"1 node x 4 GPUs", "4", "12.500", "2.00", "160.00", "2.00", "4.2000", "10.00"}));
  EXPECT_EQ(texts_of(table.rows[3]), (Texts{"1 node x 8 GPUs", "-", "-", "-", "-", "-", "-", "-"}));
  EXPECT_TRUE(contains(below(table), "1 node x 8 GPUs: failed: out of memory: step 1: rank 3 ("));
  EXPECT_TRUE(
      contains(below(table),
               "4_gpus, Runtime Scale: trained on 2000 rows, the baseline on 2500: runtimes are compared per row "
               "(0.0800 s against 0.1600 s); their plain ratio, 2.50, would be false\n"));
}

TEST(Tables, ARuntimeScaleIsRefusedWhereRowsAreUnknown) {
  std::vector<RunRecord> runs = recorded_experiments();
  for (RunRecord& run : runs) {
    if (run.text("experiment") == "fsdp/bloom/multi_gpu/2_gpus") run.facts.set("train_rows", std::monostate{});
  }
  const Table table = filled("fsdp/bloom/multi_gpu", runs);
  EXPECT_EQ(texts_of(table.rows[1])[4], "250.00");
  EXPECT_EQ(texts_of(table.rows[1])[5], "-");
  EXPECT_TRUE(contains(below(table), "1 node x 2 GPUs, Runtime Scale: refused: it is not recorded how many rows"));
}

TEST(Tables, WithoutABaselineThereAreNoScales) {
  std::vector<RunRecord> runs = recorded_experiments();
  std::erase_if(runs, [](const RunRecord& run) { return run.text("experiment") == "fsdp/bloom/baseline"; });
  const Table table = filled("fsdp/bloom/multi_gpu", runs);
  EXPECT_EQ(texts_of(table.rows[1]), (Texts{"1 node x 2 GPUs", "2", "10.000", "-", "250.00", "-", "4.1000", "18.00"}));
  EXPECT_TRUE(
      contains(below(table), "1 node x 2 GPUs, Samples/s Scale, Runtime Scale: the baseline has no finished run\n"));
}

TEST(Tables, BloomOnSeveralNodes) {
  const Table table = filled("fsdp/bloom/multi_node");
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_EQ(texts_of(table.rows[2]),
            (Texts{"4 nodes x 1 GPU", "4", "12.500", "2.00", "200.00", "2.00", "4.2500", "10.50"}));  // 10752 / 1024
}

TEST(Tables, StrategiesOnOneGpu) {
  const Table table = filled("fsdp/bloom/single_gpu");
  ASSERT_EQ(table.rows.size(), 5u);
  EXPECT_EQ(texts_of(table.rows[0]),
            (Texts{"baseline", "6.250", "80.0", "24576", "20000", "0.1000", "0.2000", "400.00"}));
  EXPECT_EQ(texts_of(table.rows[1]),
            (Texts{"full_shard", "6.100", "79.0", "24600", "20000", "0.1250", "0.2500", "410.00"}));
}

TEST(Tables, CustomModel) {
  const Table table = filled("fsdp/custom_model/multi_gpu");
  EXPECT_EQ(headings_of_table(table),
            (Texts{"Setup", "Total GPUs", "Samples/s Default", "Samples/s Callback", "Memory Default (GB used, NVML)",
                   "Memory Callback (GB allocated)", "GPU mean (%)", "Loss", "Runtime (s)"}));
  // Default: 8192 MB used / 1024; callback: 6144 MB allocated / 1024
  EXPECT_EQ(texts_of(table.rows[1]),
            (Texts{"1 node x 2 GPUs", "2", "20.000", "21.000", "8.00", "6.00", "85.0", "7.2500", "125.00"}));
  EXPECT_EQ(texts_of(filled("fsdp/custom_model/single_node").rows[0])[1], "7.0000");
}

TEST(Tables, WeakScaling) {
  const Table table = filled("fsdp/custom_model/weak_scaling");
  ASSERT_EQ(table.rows.size(), 4u);
  // Efficiency: 100 / 125 and 100 / 160, not the inverse
  EXPECT_EQ(texts_of(table.rows[0]), (Texts{"1 node x 2 GPUs", "2", "3", "8", "664,718,136", "12.000", "20.00", "88.0",
                                            "7.5000", "100.00", "100.0"}));
  EXPECT_EQ(texts_of(table.rows[1]), (Texts{"1 node x 4 GPUs", "4", "6", "4", "815,792,952", "9.600", "19.00", "87.0",
                                            "7.7500", "125.00", "80.0"}));
  EXPECT_EQ(texts_of(table.rows[2]), (Texts{"1 node x 8 GPUs", "8", "12", "2", "1,117,942,584", "7.500", "18.00",
                                            "86.0", "8.0000", "160.00", "62.5"}));
  EXPECT_EQ(texts_of(table.rows[3])[0], "2 nodes x 8 GPUs");
  EXPECT_EQ(column_heading(table.columns[10]), "Efficiency (%)");
  EXPECT_TRUE(contains(below(table), "The workshop prints the inverse"));
  EXPECT_FALSE(contains(below(table), "differs"));  // batches per GPU do, and should
}

TEST(Tables, DeepspeedOnOneGpu) {
  const Table table = filled("deepspeed/single_gpu");
  EXPECT_EQ(headings_of_table(table), (Texts{"Stage", "Offload", "GPU 0 Peak (MiB)", "GPU 0 Avg (MiB)",
                                             "CPU Peak (MiB)", "CPU Avg (MiB)", "Samples/s", "Runtime (s)"}));
  ASSERT_EQ(table.rows.size(), 10u);  // 4 stages, 3 with offload, 3 pinned
  // (24000 + 25000 + 25000) / 3, (2000 + 2000 + 2200) / 3
  EXPECT_EQ(texts_of(table.rows[1]),
            (Texts{"zero_1", "no", "25000", "24666.67", "2200", "2066.67", "4.875", "301.00"}));
  EXPECT_EQ(texts_of(table.rows[5]),
            (Texts{"cpu_offloading/zero_2", "yes", "12000", "11666.67", "9600", "9200.00", "2.375", "604.00"}));
  EXPECT_EQ(texts_of(table.rows[8])[0], "cpu_offloading/pinned_memory/zero_2");
  EXPECT_EQ(texts_of(table.rows[8])[1], "pinned");
  EXPECT_EQ(filled("deepspeed/single_gpu/cpu_offloading").rows.size(), 3u);
}

TEST(Tables, DeepspeedOnSeveralGpusHasAColumnPerSetup) {
  const Table table = filled("deepspeed/multi_gpu");
  EXPECT_EQ(headings_of_table(table),
            (Texts{"", "1 node x 2 GPUs", "1 node x 4 GPUs", "1 node x 6 GPUs", "1 node x 8 GPUs"}));
  ASSERT_EQ(table.rows.size(), 9u);
  EXPECT_EQ(texts_of(table.rows[0]), (Texts{"Runtime (s)", "400.00", "500.00", "-", "-"}));
  EXPECT_EQ(texts_of(table.rows[1]), (Texts{"Steps/s", "0.233", "0.186", "-", "-"}));
  EXPECT_EQ(texts_of(table.rows[2]), (Texts{"Samples/s", "7.500", "12.000", "-", "-"}));
  EXPECT_EQ(texts_of(table.rows[3]), (Texts{"Train Loss", "2.5000", "2.5000", "-", "-"}));
  EXPECT_EQ(texts_of(table.rows[4]), (Texts{"Eval Loss", "2.6250", "2.3750", "-", "-"}));
  EXPECT_EQ(texts_of(table.rows[5]), (Texts{"Evaluation Speed (samples/s)", "20.000", "36.000", "-", "-"}));
  EXPECT_EQ(texts_of(table.rows[6]), (Texts{"GPU 0 Peak (MiB)", "14000", "13000", "-", "-"}));
  EXPECT_EQ(texts_of(table.rows[7]), (Texts{"GPU 0 Avg (MiB)", "13333.33", "12333.33", "-", "-"}));
  EXPECT_EQ(texts_of(table.rows[8]), (Texts{"GPU 0 Mode (MiB)", "14000", "13000", "-", "-"}));
  EXPECT_TRUE(contains(below(table), "the commit differs between rows: c0ffee1 in 2_gpus; c0ffee2 in 4_gpus\n"));
  EXPECT_TRUE(contains(below(table), "1 node x 6 GPUs: no run of deepspeed/multi_gpu/6_gpus was found\n1 node x 8"));
}

TEST(Tables, DeepspeedStagesOnTwoGpus) {
  const Table table = filled("deepspeed/multi_gpu/2_gpus_stages_comparison");
  ASSERT_EQ(table.rows.size(), 6u);  // stages 1, 2, 3 x offload no, yes
  EXPECT_EQ(texts_of(table.rows[1]),
            (Texts{"zero_2", "no", "8.000", "2.5000", "21000", "20666.67", "21000", "3100", "3066.67", "3100"}));
  EXPECT_EQ(texts_of(table.rows[4]), (Texts{"cpu_offloading/zero_2", "yes", "4.000", "2.5000", "11000", "10666.67",
                                            "11000", "9100", "9066.67", "9100"}));
}

TEST(Tables, DeepspeedOnSeveralNodesInGiB) {
  const Table table = filled("deepspeed/multi_node");
  EXPECT_EQ(headings_of_table(table),
            (Texts{"Setup", "Samples/s", "Train Loss", "GPU 0 Peak (GiB)", "GPU 0 Avg (GiB)", "GPU 0 Mode (MiB)"}));
  // 12288 / 1024; (10240 + 3 x 12288) / 4 / 1024 = 11.5
  EXPECT_EQ(texts_of(table.rows[0]), (Texts{"2 nodes x 2 GPUs", "7.000", "2.5000", "12.00", "11.50", "12288"}));
  EXPECT_TRUE(contains(below(table), "2_nodes: [gpu_memory_log_node2 - GPU 1] peak 9.28 GiB, average 9.28 GiB\n"));
}

TEST(Tables, Ddp) {
  const Table table = filled("ddp/multi_gpu");
  EXPECT_EQ(headings_of_table(table),
            (Texts{"Setup", "Train Loss", "Train Acc (%)", "Throughput (img/s)", "GPU 0 Peak (MiB)", "GPU 0 Avg (MiB)",
                   "GPU 0 Mode (MiB)", "Throughput Scaling (x)", "Memory Avg Scaling (x)"}));
  // Throughput of the last epoch, not the trainer's 714.286; (10000 + 20000 + 20000 + 14000) / 4
  EXPECT_EQ(texts_of(table.rows[0]),
            (Texts{"1 node x 1 GPU", "5.250", "2.00", "700.0", "20000", "16000.00", "20000", "1.00", "1.00"}));
  // 1330 / 700 and 20000 / 16000
  EXPECT_EQ(texts_of(table.rows[1]),
            (Texts{"1 node x 2 GPUs", "5.375", "1.75", "1330.0", "24000", "20000.00", "24000", "1.90", "1.25"}));
  EXPECT_EQ(filled("ddp/multi_node").rows.size(), 4u);  // and the baseline
}

TEST(Tables, CellsKeepUnroundedValues) {
  EXPECT_DOUBLE_EQ(*filled("fsdp/bloom/multi_gpu").rows[1][3].value, 1.6);
  EXPECT_DOUBLE_EQ(*filled("deepspeed/single_gpu").rows[1][3].value, 74000.0 / 3);
}

// Records that the program itself wrote: `tessera experiment run fsdp/bloom/baseline fsdp/bloom/multi_gpu/2_gpus
// --scale tiny`, with fewer settings, metrics and readings.
TEST(Tables, AreFilledFromWhatTheProgramWrites) {
  const FoundRuns found = find_runs({std::string(TESSERA_TEST_DATA_FOLDER) + "/runs/program"}, RunDetail::kWhole);
  ASSERT_EQ(found.runs.size(), 2u);
  const Table table = filled("fsdp/bloom/multi_gpu", found.runs);
  EXPECT_EQ(texts_of(table.rows[0]), (Texts{"1 node x 1 GPU", "1", "1.546", "1.00", "161.74", "1.00", "7.5089", "-"}));
  // 2.362 / 1.546; (161.7369 / 105.8237) x (4.32 / 4.64 epochs)
  EXPECT_EQ(texts_of(table.rows[1]), (Texts{"1 node x 2 GPUs", "2", "2.362", "1.53", "105.82", "1.42", "7.5956", "-"}));
  EXPECT_FALSE(contains(below(table), "merge_accumulation"));  // off in both, as decided
  EXPECT_TRUE(contains(below(table), "1 node x 2 GPUs, GPU Memory Allocated: the run recorded no NVML figure"));
}

TEST(TableRows, TheNewestFinishedRunFillsARow) {
  std::vector<RunRecord> runs = recorded_experiments();
  const auto add = [&](const char* started, const char* status, double loss) {
    RunRecord run = runs.front();
    run.facts.set("experiment", "fsdp/bloom/multi_gpu/8_gpus");
    run.started = started;
    run.status = status;
    run.exit_reason = status == std::string("failed") ? "no space left" : "";
    run.metrics = {{{"train_loss", loss}}};
    runs.push_back(run);
  };
  add("2026-11-15T10:00:00Z", "finished", 1);
  add("2026-11-15T12:00:00Z", "finished", 2);
  add("2026-11-15T11:00:00Z", "finished", 3);
  add("2026-11-15T13:00:00Z", "failed", 4);
  const Table table = filled("fsdp/bloom/multi_gpu", runs);
  EXPECT_EQ(texts_of(table.rows[3])[6], "2.0000");
  EXPECT_TRUE(contains(below(table), "8_gpus: a newer run has not finished: failed: no space left ("));
}

TEST(TableRows, MayBeNamed) {
  std::vector<RunRecord> runs = recorded_experiments();
  std::vector<NamedRun> named;
  for (RunRecord& run : runs) {
    if (run.text("experiment") == "fsdp/bloom/multi_gpu/4_gpus") named.push_back({"2_gpus", run});
    run.facts.set("experiment", std::monostate{});
  }
  const Table table = filled("fsdp/bloom/multi_gpu", runs, named);
  EXPECT_EQ(texts_of(table.rows[1])[2], "12.500");
  EXPECT_EQ(texts_of(table.rows[0])[2], "-");
  EXPECT_TRUE(contains(below(table), "2_gpus: the run has 4 ranks on 1 nodes; the experiment is meant for 2 on 1\n"));
  EXPECT_TRUE(contains(below(table), " without an experiment's name: "));
  EXPECT_TRUE(contains(below(table), "Name a row's run as ROW=DIR: 8_gpus="));
  named.front().row = "3_gpus";
  EXPECT_THROW(filled("fsdp/bloom/multi_gpu", runs, named), UsageError);
}

TEST(TableRows, DifferencesArePrintedBelow) {
  std::vector<RunRecord> runs = recorded_experiments();
  for (RunRecord& run : runs) {
    if (run.text("experiment") == "deepspeed/single_gpu/zero_1") {
      run.facts.set("label_mode", "answer");
      run.facts.set("precision", "bf16");
      run.facts.set("merge_accumulation", true);
      run.facts.set("batch_size", std::int64_t{8});
      run.facts.set("offload_optimizer", true);
    }
    if (run.text("experiment") == "deepspeed/single_gpu/cpu_offloading/zero_2") run.facts.set("pin_memory", true);
  }
  const std::string notes = below(filled("deepspeed/single_gpu", runs));
  const std::string others = "zero_0, zero_2, zero_3, cpu_offloading/zero_2, cpu_offloading/pinned_memory/zero_2";
  EXPECT_TRUE(contains(notes, "the label mode differs between rows: answer in zero_1; padded in " + others + "\n"));
  EXPECT_TRUE(contains(notes, "the precision differs between rows: bf16 in zero_1; fp16 in " + others + "\n"));
  EXPECT_TRUE(contains(notes, "the merge_accumulation differs between rows: off in " + others + "; on in zero_1\n"))
      << notes;
  EXPECT_TRUE(contains(
      notes, "the batch x accumulation per GPU differs between rows: 4 x 4 in " + others + "; 8 x 4 in zero_1\n"));
  EXPECT_TRUE(contains(notes, "zero_1: the run was with offload\n"));
  EXPECT_TRUE(contains(notes, "cpu_offloading/zero_2: the run's host memory was pinned\n"));
}

TEST(TableNames, AreThoseOfTheCatalogueWhoseExperimentsAreAllInATable) {
  const std::vector<ExperimentSpec>& all = catalogue_experiments();
  EXPECT_EQ(all.size(), 7u + 11u + 11u + 26u);  // ddp, fsdp/bloom, fsdp/custom_model, deepspeed
  const std::vector<TableSpec>& tables = builtin_catalogue().tables();
  EXPECT_EQ(tables.size(), 18u);
  for (const TableSpec& table : tables) {
    for (const std::string& folder : table.folders) EXPECT_FALSE(experiments_in(all, folder).empty()) << folder;
    EXPECT_TRUE(table.baseline.empty() || find_experiment(all, table.baseline) != nullptr) << table.baseline;
  }
  EXPECT_EQ(experiments_in(all, "deepspeed/multi_gpu").size(), 4u);  // not those of 2_gpus_stages_comparison
  for (const ExperimentSpec& experiment : all) EXPECT_TRUE(is_in_table(experiment, tables)) << experiment.name;
  const ExperimentSpec* nodes = find_experiment(all, "ddp/multi_node/4_nodes");
  ASSERT_NE(nodes, nullptr);
  EXPECT_EQ(nodes->nodes(), 4);
  EXPECT_EQ(nodes->num_gpus(), 8);
  EXPECT_EQ(nodes->study.kind, StudyKind::kThroughput);
  EXPECT_EQ(nodes->study.baseline, "ddp/baseline");
}

TEST(TableNames, AreFoldersOfExperimentsWithTheirDirectChildren) {
  const std::vector<ExperimentSpec> all = {experiment("ddp/baseline", 1), experiment("ddp/multi_gpu/2_gpus", 2),
                                           experiment("ddp/multi_gpu/more/4", 4)};
  EXPECT_EQ(experiments_in(all, "ddp/multi_gpu").size(), 1u);
  EXPECT_EQ(experiments_in(all, "ddp/baseline").size(), 1u);
  EXPECT_EQ(find_table("ddp/multi_gpu/", builtin_catalogue().tables(), all).title, "DDP on several GPUs");
  EXPECT_THROW(find_table("ddp/multi_gpus", builtin_catalogue().tables(), all), UsageError);
}

// A run on this many ranks that saw 100 rows per rank and epoch.
RunRecord run_of_family(const std::string& experiment, int ranks, double rows, double runtime) {
  RunRecord run;
  run.status = "finished";
  run.started = "2026-11-15T10:00:00Z";
  run.facts = {{"experiment", experiment},
               {"nodes", std::int64_t{1}},
               {"ranks", std::int64_t{ranks}},
               {"train_rows", rows},
               {"device", "cpu"}};
  run.metrics = {
      {{"epoch", 1.0}, {"train_runtime", runtime}, {"train_samples_per_second", rows / runtime}, {"train_loss", 2.5}}};
  run.summary = {{"max_cpu_mem_MB", 300.0}};
  return run;
}

TEST(GeneralTable, HasTheRowsOfAFamilyAndItsStudysEfficiency) {
  const auto table_of = [](StudyKind kind, const std::vector<RunRecord>& runs) {
    const std::vector<ExperimentSpec> all = {experiment("mine/one", 1, {kind, "mine/one"}),
                                             experiment("mine/wide/four", 4, {kind, "mine/one"})};
    const TableSpec spec = find_table("mine", builtin_catalogue().tables(), all);
    return fill_table(spec, choose_rows(spec, all, runs, {}, kAfterwards));
  };
  const Table strong = table_of(StudyKind::kStrong,
                                {run_of_family("mine/one", 1, 400, 100), run_of_family("mine/wide/four", 4, 400, 40)});
  EXPECT_EQ(headings_of_table(strong), (Texts{"Experiment", "Setup", "Total GPUs", "Samples/s", "Samples/s Scale (x)",
                                              "Runtime (s)", "Efficiency (%)", "Loss", "Peak Memory (MB)"}));
  EXPECT_EQ(texts_of(strong.rows[0]),
            (Texts{"one", "1 node x 1 GPU", "1", "4.000", "1.00", "100.00", "100.0", "2.5000", "300"}));
  // (100 / 40) / 4
  EXPECT_EQ(texts_of(strong.rows[1]),
            (Texts{"wide/four", "1 node x 4 GPUs", "4", "10.000", "2.50", "40.00", "62.5", "2.5000", "300"}));
  const std::vector<RunRecord> weak = {run_of_family("mine/one", 1, 100, 100),
                                       run_of_family("mine/wide/four", 4, 400, 125)};
  EXPECT_EQ(texts_of(table_of(StudyKind::kWeakByData, weak).rows[1])[6], "80.0");  // 100 / 125
  EXPECT_EQ(texts_of(table_of(StudyKind::kThroughput, weak).rows[1])[6], "80.0");  // (3.2 / 1) / 4
  EXPECT_EQ(
      texts_of(table_of(StudyKind::kWeakByLayers, {weak[0], run_of_family("mine/wide/four", 4, 100, 125)}).rows[1])[6],
      "80.0");
  const Table none = table_of(StudyKind::kNone, weak);
  EXPECT_EQ(texts_of(none.rows[1])[6], "-");
  EXPECT_TRUE(contains(below(none), "wide/four, Efficiency: its experiment belongs to no scaling study\n"));
}

TEST(DeclaredTable, IsThatOfAUsersOwnFile) {
  const auto tables_of = [](const std::string& columns) {
    const JsonText file(R"({"family": "mine", "table_notes": {"one": "A note."}, "tables": {
                             "all": {"rows": ["wide"], "baseline": "one", "shows_baseline": true, "columns": [)" +
                            columns + R"(], "notes": ["one", "Another."]},
                             "wide": {"like": "all", "title": "Wide"}}})",
                        "mine.json");
    return read_tables(file.root());
  };
  const std::vector<ExperimentSpec> all = {experiment("mine/one", 1), experiment("mine/wide/four", 4)};
  const std::vector<RunRecord> runs = {run_of_family("mine/one", 1, 400, 100),
                                       run_of_family("mine/wide/four", 4, 400, 40)};
  const auto table_of = [&](const std::string& name, const std::string& columns) {
    const TableSpec spec = find_table(name, tables_of(columns), all);
    return fill_table(spec, choose_rows(spec, all, runs, {}, kAfterwards));
  };
  const std::string columns = R"("runtime_scale", {"column": "runtime", "label": "Time", "unit": "seconds"})";
  const Table table = table_of("mine/all", columns);
  EXPECT_EQ(headings_of_table(table), (Texts{"Experiment", "Runtime Scale (x)", "Time (seconds)"}));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(texts_of(table.rows[1]), (Texts{"four", "2.50", "40.00"}));
  EXPECT_TRUE(contains(below(table), "A note.\nAnother.\n"));
  EXPECT_EQ(table_of("mine/wide", columns).title, "Wide");
  EXPECT_TRUE(contains(message_of([&] { table_of("mine/all", R"("runtimes")"); }),
                       "mine.json: table mine/all: unknown column 'runtimes', did you mean 'runtime'?"));
  EXPECT_TRUE(contains(message_of([&] { tables_of(R"("runtime"], "colums": [)"); }), "did you mean \"columns\"?"));
}

TEST(GeneralTable, TakesFamiliesThatOnlyRunsName) {
  const std::vector<RunRecord> runs = {run_of_family("mine/b", 2, 100, 10), run_of_family("other/a", 1, 100, 10)};
  const std::vector<ExperimentSpec> all = experiments_of(Catalogue({.has_builtin = false, .has_own = false}), runs);
  const TableSpec spec = find_table("mine", builtin_catalogue().tables(), all);
  const Table table = fill_table(spec, choose_rows(spec, all, runs, {}, kAfterwards));
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(texts_of(table.rows[0])[1], "1 node x 2 GPUs");
  EXPECT_TRUE(contains(below(table), "b, Samples/s Scale: its experiment names no baseline\n")) << below(table);
  EXPECT_THROW(find_table("nobodys", builtin_catalogue().tables(), all), UsageError);
}

TEST(TableRows, RepeatsAreOneRowWithMedianAndSpread) {
  std::vector<RunRecord> runs = {run_of_family("mine/a/repeat_1", 1, 100, 10),
                                 run_of_family("mine/a/repeat_2", 1, 100, 8),
                                 run_of_family("mine/a/repeat_3", 1, 100, 20)};
  runs.push_back(run_of_family("mine/a/repeat_3", 1, 100, 12.5));  // run again: this one counts
  runs.back().started = "2026-11-15T11:00:00Z";
  const std::vector<ExperimentSpec> all = {experiment("mine/a", 1, {StudyKind::kStrong, "mine/a"})};
  const TableSpec spec = find_table("mine", builtin_catalogue().tables(), all);
  const Table table = fill_table(spec, choose_rows(spec, all, runs, {}, kAfterwards));
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(texts_of(table.rows[0]),
            (Texts{"a", "1 node x 1 GPU", "1", "10.000 (8.000 to 12.500)", "1.00 (0.80 to 1.25)",
                   "10.00 (8.00 to 12.50)", "100.0 (80.0 to 125.0)", "2.5000", "300"}));
  EXPECT_DOUBLE_EQ(*table.rows[0][5].value, 10);
  EXPECT_TRUE(contains(below(table), "a: 3 repeats\n"));
  EXPECT_EQ(without_repeat("mine/a/repeat_12"), "mine/a");
  EXPECT_EQ(without_repeat("mine/repeat_it"), "mine/repeat_it");
}

}  // namespace
}  // namespace tessera
