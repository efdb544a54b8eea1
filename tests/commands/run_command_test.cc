// What happens around the loop of `tessera train`: records, logs, signals, running out of memory, full disks.
#include <sys/resource.h>

#include <fstream>
#include <regex>

#include "commands/train_command.h"
#include "core/file.h"
#include "core/host.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

using RunCommand = TrainCommandTest;

TEST_F(RunCommand, TheRecordSaysWhoRanWhatWhereAndHowItEnded) {
  ::setenv("WANDB_API_KEY", "very-secret-key-0123", 1);
  const Ended ended = gpt("out",
                          "--run_name very-secret-key-0123 --report_to tensorboard,wandb --hub-token=hush "
                          "--push_to_hub_token hf_whisper",
                          2);
  ::unsetenv("WANDB_API_KEY");
  ASSERT_EQ(ended.status, 0) << ended.output;
  const Json run = record("out");
  EXPECT_EQ(run.at("status"), "finished");
  EXPECT_EQ(run.at("exit_reason"), "");
  EXPECT_EQ(run.at("hosts"), Json::array({host_name(), host_name()}));
  ASSERT_EQ(run.at("devices").size(), 2U);
  for (const Json& device : run.at("devices")) {
    EXPECT_TRUE(device.get<std::string>().ends_with(" (cpu)")) << device;
    EXPECT_GT(device.get<std::string>().size(), 6U) << device;
  }
  for (const char* name : {"tessera", "torch", "mpi"}) EXPECT_NE(run.at("versions").at(name), "") << name;
  const std::string commit = run.at("commit");
  EXPECT_TRUE(commit.empty() || std::regex_match(commit, std::regex("[0-9a-f]{40}(-dirty)?"))) << commit;
  // What was decided, and typed.
  const Json& settings = run.at("settings");
  EXPECT_EQ(settings.at("strategy"), Json({{"value", "ddp"}, {"origin", "decided by the run, auto (default)"}}));
  EXPECT_EQ(settings.at("merge_accumulation").at("value"), "off");
  EXPECT_EQ(settings.at("backend").at("value"), "mpi");
  EXPECT_EQ(settings.at("device"), Json({{"value", "cpu"}, {"origin", "command line"}}));
  EXPECT_EQ(settings.at("learning_rate").at("value"), Json(5e-5));
  EXPECT_EQ(settings.at("load_best_model_at_end").at("value"), Json(false));
  const Json& summary = run.at("summary");
  EXPECT_GT(summary.at("avg_cpu_mem_MB"), 10);
  EXPECT_GE(summary.at("max_cpu_mem_MB"), summary.at("avg_cpu_mem_MB"));
  EXPECT_GT(summary.at("avg_cpu_util_%"), 0);
  EXPECT_TRUE(summary.contains("std_cpu_util_%"));
  EXPECT_TRUE(summary.contains("train/samples_per_second_mean"));
  for (const char* secret : {"very-secret", "hush", "whisper"}) {
    EXPECT_FALSE(contains(read_file(folder_ / "out" / "run.json"), secret)) << secret;
  }
  for (const char* folder : {"runs", "wandb"}) {
    std::string bytes;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "out" / folder)) {
      if (entry.is_regular_file()) bytes += read_file(entry.path());
    }
    EXPECT_EQ(count_of(bytes, "proc.memory.rssMB"), 4) << folder;  // one per log
    EXPECT_TRUE(contains(bytes, "avg_cpu_mem_MB")) << folder;
    if (folder != std::string("wandb")) continue;
    // Items of its config: the key, then field 16, the value's length and JSON.
    EXPECT_TRUE(contains(bytes, "strategy\x82\x01\x05\"ddp\""));
    EXPECT_TRUE(contains(bytes,
                         "learning_rate\x82\x01\x05"
                         "5e-05"));
  }
}

TEST_F(RunCommand, EveryRankHasALogOfItsOwn) {
  const Ended by_default = gpt("out", "", 2);
  ASSERT_EQ(by_default.status, 0) << by_default.output;
  for (const int rank : {0, 1}) {
    const std::string log = read_file(folder_ / "out" / "log" / fmt::format("rank-{}.log", rank));
    EXPECT_EQ(logged(log, "loss"), logged(by_default.output, "loss")) << log;
    EXPECT_EQ(count_of(log, fmt::format(" rank {} info  step 4: finished", rank)), 1) << log;
  }
  ::setenv("LOG_DIR", out("logs").c_str(), 1);
  ::setenv("SLURM_JOB_NAME", "my/job", 1);
  const Ended chosen = gpt("chosen", "", 2);
  ::unsetenv("LOG_DIR");
  ::unsetenv("SLURM_JOB_NAME");
  ASSERT_EQ(chosen.status, 0) << chosen.output;
  int num_logs = 0;
  for (const auto& entry : fs::recursive_directory_iterator(out("logs"))) {
    if (!entry.is_regular_file()) continue;
    ++num_logs;
    EXPECT_TRUE(contains(entry.path().string(), "/logs/my_job")) << entry.path();
  }
  EXPECT_EQ(num_logs, 2);
  EXPECT_FALSE(fs::exists(fs::path(out("chosen")) / "log"));
  std::ofstream(out("file")) << "";
  const Ended refused = gpt("refused", fmt::format("--log_dir {}/x", out("file")), 2);
  EXPECT_EQ(refused.status, 2) << refused.output;
  EXPECT_TRUE(contains(refused.output, "--log_dir: cannot write the log")) << refused.output;
}

TEST_F(RunCommand, WhatSettingsAskForIsDoneOrSaid) {
  const Ended ended =
      gpt("out",
          "--tf32 true --full_determinism --buffer_dtype bf16 --layers_per_rank 1.5 --samples_per_rank 4 "
          "--max_train_samples 0 --num_layers 0",
          2);
  EXPECT_EQ(ended.status, 2) << ended.output;  // two settings for the number of layers
  const std::string words = fmt::format(
      "train gpt-qa --device cpu --output_dir {} --disable_tqdm --report_to none --tokenizer_name {} --train_file {} "
      "--max_length 96 --seq_length 96 --hidden_size 32 --num_heads 4 --ff_dim 48 --per_device_train_batch_size 2 "
      "--num_train_epochs 1 --logging_steps 1 --tf32 true --full_determinism --buffer_dtype bf16 --layers_per_rank 1.5 "
      "--samples_per_rank 6 --save_strategy no",
      out("out"), kTestTokenizer, kTestRows);
  const Ended scaled = run_tessera(words, 2);
  ASSERT_EQ(scaled.status, 0) << scaled.output;
  for (const char* said :
       {"--tf32 has no effect on a CPU", "--full_determinism has no effect on a CPU",
        "--buffer_dtype=bf16 (command line) changes nothing", "weak scaling: 3 layers, 1.5 for each of 2 ranks",
        "weak scaling: 12 samples, 6 for each of 2 ranks", "12 training rows", "3 steps of 2 x 1 rows on 2 ranks"}) {
    EXPECT_EQ(count_of(scaled.output, said), 1) << said << "\n" << scaled.output;
  }
  EXPECT_EQ(read_json_file(folder_ / "out" / "config.json").at("num_layers"), 3) << scaled.output;
}

TEST_F(RunCommand, WarningsArePrintedOnce) {
  const Ended ended = gpt("out", fmt::format("--label_mode separate --fp16 --max_steps 1 --validation_file {} "
                                             "--max_eval_samples 2 --predict_with_generate false",
                                             kTestRows));
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(count_of(ended.output, "FSDP workshop"), 1) << ended.output;
  EXPECT_EQ(count_of(ended.output, "--fp16=true (command line): float16 is tens of times slower"), 1) << ended.output;
}

// A run that gets a signal: starts `words`, and does `send` once two losses are logged.
Ended run_with_signal(const std::string& start, const std::string& words, const std::string& send,
                      const std::string& log) {
  return run_shell(
      fmt::format("env --default-signal=INT {} {} {} > {} 2>&1 & pid=$!\n"
                  "for i in $(seq 600); do [ $(grep -c \"'loss'\" {}) -ge 2 ] && break; sleep 0.05; done\n"
                  "{}\nwait $pid; status=$?; cat {}; exit $status",
                  start, binary(), words, log, log, send, log));
}

const std::string kMpirun = fmt::format(
    "{} --allow-run-as-root --oversubscribe --bind-to none -x OMP_NUM_THREADS=1 --mca mpi_yield_when_idle 1 -np 2",
    TESSERA_MPIRUN);

std::vector<double> joined(std::vector<double> first, const std::vector<double>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST_F(RunCommand, ASignalToOneRankStopsAllAndTheRunGoesOnBitForBit) {
  const std::string more =
      "--strategy zero3 --dropout 0.1 --num_train_epochs 150 --save_strategy steps --save_steps 10000";
  const Ended whole = gpt("whole", more, 2);
  ASSERT_EQ(whole.status, 0) << whole.output;
  const std::string last_rank = fmt::format("kill -USR1 $(pgrep -f '^{} .*{} ' | tail -n 1)", binary(), out("out"));
  const Ended cut = run_with_signal(kMpirun, gpt_words("out", more), last_rank, out("log"));
  EXPECT_EQ(cut.status, 128 + 10) << cut.output;
  const Json run = record("out");
  EXPECT_EQ(run.at("status"), "interrupted");
  const std::string reason = run.at("exit_reason");
  const std::size_t num_done = logged(cut.output, "loss").size();
  ASSERT_LT(num_done, 300U);
  EXPECT_EQ(reason,
            fmt::format("SIGUSR1: stopped after step {} of 300; --resume_from_checkpoint true resumes it", num_done));
  EXPECT_EQ(count_of(cut.output, reason), 1) << cut.output;
  EXPECT_TRUE(logged(cut.output, "train_loss").empty()) << cut.output;
  EXPECT_EQ(run.at("checkpoints"), Json::array({out("out") + fmt::format("/checkpoint-{}", num_done)}));
  EXPECT_FALSE(fs::exists(fs::path(out("out")) / "model.safetensors"));
  const Ended rest = gpt("out", more + " --resume_from_checkpoint true", 2);
  ASSERT_EQ(rest.status, 0) << rest.output;
  EXPECT_EQ(joined(logged(cut.output, "loss"), logged(rest.output, "loss")), logged(whole.output, "loss"));
  EXPECT_EQ(logged(rest.output, "train_loss"), logged(whole.output, "train_loss"));
  EXPECT_TRUE(read_file(folder_ / "out" / "model.safetensors") == read_file(folder_ / "whole" / "model.safetensors"));
}

TEST_F(RunCommand, TheLauncherPassesASignalOnAndEndsWithIt) {
  const std::string words =
      gpt_words("out", "--strategy ddp --num_train_epochs 3000 --save_strategy epoch --save_total_limit 1");
  const Ended ended =
      run_with_signal(fmt::format("{} launch --nproc_per_node 2", binary()), words, "kill -TERM $pid", out("log"));
  EXPECT_EQ(ended.status, 128 + 15) << ended.output;
  EXPECT_TRUE(contains(ended.output, "SIGTERM: stopped after step ")) << ended.output;
  EXPECT_EQ(record("out").at("status"), "interrupted");
  const Ended again = run_tessera(
      gpt_words("out",
                fmt::format("--num_train_epochs 3000 --resume_from_checkpoint true --save_strategy no --max_steps {}",
                            record("out").at("last_values").at("step").get<int>() + 2)),
      2);
  EXPECT_EQ(again.status, 0) << again.output;
}

TEST_F(RunCommand, ARunThatWasAskedToSaveAndStopIsNotStartedAgain) {
  const std::string words =
      gpt_words("out", "--strategy zero2 --num_train_epochs 3000 --save_strategy epoch --save_total_limit 1");
  const Ended ended = run_with_signal(fmt::format("{} launch --nproc_per_node 2 --max_restarts 2", binary()), words,
                                      "kill -USR1 $pid", out("log"));
  EXPECT_EQ(ended.status, 128 + 10) << ended.output;
  EXPECT_EQ(count_of(ended.output, "rank 0 warn  SIGUSR1: stopped after step "), 1) << ended.output;
  EXPECT_EQ(record("out").at("status"), "interrupted");
}

TEST_F(RunCommand, WithoutCheckpointsASignalEndsTheRunAndSaysSo) {
  const Ended ended = run_with_signal("", gpt_words("out", "--num_train_epochs 3000"), "kill -INT $pid", out("log"));
  EXPECT_EQ(ended.status, 128 + 2) << ended.output;
  EXPECT_TRUE(contains(ended.output, "SIGINT: stopped after step ")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "nothing was saved, because of --save_strategy no")) << ended.output;
  EXPECT_EQ(record("out").at("status"), "interrupted");
}

// Steps that take a second or more.
const std::string kSlowSteps =
    "--hidden_size 256 --num_layers 4 --ff_dim 2048 --max_train_samples 32 --per_device_train_batch_size 1 "
    "--gradient_accumulation_steps 32 --merge_accumulation off";

TEST_F(RunCommand, ASignalInTheLastStepLeavesTheModelAndOnlyItsAnswersOut) {
  const std::string words =
      gpt_words("out", fmt::format("{} --max_steps 1 --validation_file {} --eval_strategy no --max_eval_samples 4",
                                   kSlowSteps, kTestRows));
  const Ended ended =
      run_shell(fmt::format("{} {} > {} 2>&1 & pid=$!\n"
                            "for i in $(seq 600); do [ -e {}/run.json ] && break; sleep 0.02; done\n"
                            "kill -TERM $pid; wait $pid; status=$?; cat {}; exit $status",
                            binary(), words, out("log"), out("out"), out("log")));
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "Model and tokenizer saved to ")) << ended.output;
  EXPECT_FALSE(contains(ended.output, "Evaluation Metrics")) << ended.output;
  EXPECT_EQ(record("out").at("status"), "finished");
  EXPECT_EQ(record("out").at("exit_reason"), "SIGTERM: the model was saved, and the rest was skipped");
}

TEST_F(RunCommand, ASecondInterruptEndsAtOnce) {
  // The second signal comes before the run reacts to the first.
  const std::string words = gpt_words("out", kSlowSteps + " --num_train_epochs 400 --save_strategy epoch");
  const Ended ended =
      run_shell(fmt::format("env --default-signal=INT {} {} > {} 2>&1 & pid=$!\n"
                            "for i in $(seq 600); do [ -e {}/run.json ] && break; sleep 0.05; done\n"
                            "kill -INT $pid; sleep 0.1; kill -INT $pid; wait $pid; status=$?; cat {}; exit $status",
                            binary(), words, out("log"), out("out"), out("log")));
  EXPECT_EQ(ended.status, 128 + 2) << ended.output;
  EXPECT_FALSE(contains(ended.output, "stopped after step")) << ended.output;
  EXPECT_EQ(record("out").at("status"), "running");
}

TEST_F(RunCommand, AFullDiskUnderTheReportsIsWarnedOfAndTheRunGoesOn) {
  fs::create_directories(out("out"));
  fs::create_symlink("/dev/full", fs::path(out("out")) / "metrics.csv");
  const Ended ended = gpt("out", "", 2);
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(count_of(ended.output, "No space left on device"), 1) << ended.output;
  EXPECT_EQ(count_of(ended.output, "the run continues"), 1) << ended.output;
  EXPECT_EQ(record("out").at("status"), "finished");
  EXPECT_TRUE(fs::exists(fs::path(out("out")) / "model.safetensors"));
}

TEST_F(RunCommand, AFullDiskUnderTheOutputIsToldWhenTheModelIsSaved) {
  const Ended ended = run_shell(fmt::format("{} {} > /dev/full", binary(), gpt_words("out", "")));
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_TRUE(contains(ended.output, "cannot write to standard output: No space left on device")) << ended.output;
  EXPECT_EQ(record("out").at("status"), "finished");
  EXPECT_TRUE(fs::exists(fs::path(out("out")) / "model.safetensors"));
}

TEST_F(RunCommand, AModelThatCannotBeSavedIsOneClearMessage) {
  // Files may have at most 40 blocks of 512 bytes; the model's is larger.
  const Ended ended = run_shell(fmt::format("trap '' XFSZ; ulimit -f 40; {} {}", binary(), gpt_words("out", "")));
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_TRUE(contains(ended.output, "model.safetensors")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "File too large")) << ended.output;
  EXPECT_FALSE(fs::exists(fs::path(out("out")) / "model.safetensors"));
  EXPECT_EQ(record("out").at("status"), "failed");
  EXPECT_TRUE(contains(record("out").at("exit_reason").get<std::string>(), "File too large"));
  const Ended checkpoint =
      run_shell(fmt::format("trap '' XFSZ; ulimit -f 40; {} {}", binary(), gpt_words("two", "--save_strategy epoch")));
  EXPECT_EQ(checkpoint.status, 1) << checkpoint.output;
  EXPECT_TRUE(contains(checkpoint.output, "File too large")) << checkpoint.output;
  for (const auto& entry : fs::directory_iterator(out("two"))) {
    EXPECT_FALSE(contains(entry.path().filename().string(), "checkpoint")) << entry.path();  // not even a part of one
  }
}

// Limits the address space, as `ulimit -v` does: enough for what a rank takes before its first step, not for the step.
TEST_F(RunCommand, OutOfMemoryNamesTheUnitThePlanAndWhatWouldFit) {
  const std::string words = fmt::format(
      "train gpt-qa --device cpu --output_dir {} --disable_tqdm --report_to none --tokenizer_name {} --train_file {} "
      "--max_length 160 --seq_length 160 --hidden_size 256 --num_layers 8 --num_heads 4 --ff_dim 4096 --vocab_size "
      "1024 "
      "--num_train_epochs 1 --per_device_train_batch_size 32 --save_strategy no",
      out("out"), kTestTokenizer, kTestRows);
  for (const int num_ranks : {1, 2}) {
    const std::string start = num_ranks == 1 ? "" : kMpirun;
    const Ended ended = run_shell(fmt::format("ulimit -v 2000000; {} {} {}", start, binary(), words));
    EXPECT_EQ(ended.status, 47) << ended.output;
    EXPECT_TRUE(std::regex_search(
        ended.output,
        std::regex(
            "out of memory: step 1: rank [01], (forward|backward) of unit layers.[0-7]: cannot allocate [0-9.]+ MiB")))
        << ended.output;
    EXPECT_TRUE(std::regex_search(
        ended.output, std::regex("the memory plan of a step \\((single|ddp)\\): [0-9.]+ [MG]iB at the peak, in .*: "
                                 "parameters .*, activations [0-9.]+ [MG]iB; this rank can use")))
        << ended.output;
    EXPECT_EQ(count_of(ended.output, "warn  this run may run out of memory: the memory plan of a step"), 1)
        << ended.output;
    EXPECT_TRUE(contains(ended.output, "--per_device_train_batch_size")) << ended.output;
    EXPECT_TRUE(contains(ended.output, "--gradient_checkpointing")) << ended.output;
    EXPECT_EQ(record("out").at("status"), "failed");
  }
}

TEST_F(RunCommand, ALossThatIsNoNumberCanBeToldToGoOn) {
  const std::string spoiling = "--learning_rate 1e30 --max_grad_norm 0 --lr_scheduler_type constant";
  const Ended ended = bloom("out", spoiling + " --stop_on_nan false", 2);
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "step 2: ")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "skipping the update")) << ended.output;
}

TEST_F(RunCommand, CombinationsThatMakeNoSenseAreRefusedByAllRanksAlike) {
  std::ofstream(out("zero.json")) << R"({"zero_optimization": {"stage": 2}})";
  struct Case {
    std::string words, message;
  };
  const std::vector<Case> cases = {
      {"--fp16 --bf16", "--fp16=true (command line) and --bf16=true (command line)"},
      {"--strategy zero2 --offload_param", "--offload_param=true (command line): needs a strategy that splits"},
      {fmt::format("--deepspeed {} --fsdp full_shard", out("zero.json")), "--deepspeed and --fsdp exclude each other"},
      {"--warmup_steps 100 --max_steps 5", "warmup_steps 100: the run has only 5 steps"},
      {"--warmup_steps 100", "warmup_steps 100: the run has only"},
      {"--eval_strategy epoch",
       "--eval_strategy=epoch (command line): there is no data for it; give --validation_file"},
  };
  for (const Case& each : cases) {
    const Ended ended = gpt("out", each.words, 2);
    EXPECT_EQ(ended.status, 2) << each.words << "\n" << ended.output;
    EXPECT_TRUE(contains(ended.output, each.message)) << each.words << "\n" << ended.output;
    // Every rank that reports an error reports the same one.
    EXPECT_EQ(count_of(ended.output, each.message), count_of(ended.output, " error")) << each.words << ended.output;
  }
}

TEST_F(RunCommand, NodesMayDifferInSizeUnlessAStrategyNeedsThemAlike) {
  const Ended ddp = gpt("out", "--strategy zero2 --ranks_per_node 2 --gradient_accumulation_steps 2", 3);
  EXPECT_EQ(ddp.status, 0) << ddp.output;
  for (const char* words : {"--strategy hybrid_shard", "--strategy hybrid_shard --dry_run"}) {
    const Ended hybrid = gpt("hybrid", fmt::format("{} --ranks_per_node 2", words), 3);
    EXPECT_EQ(hybrid.status, 2) << hybrid.output;
    EXPECT_TRUE(
        contains(hybrid.output,
                 "'hybrid_shard' needs the same number of ranks on every node, but node 0 has 2 and node 1 has 1"))
        << hybrid.output;
  }
}

TEST_F(RunCommand, DryRunOnTwoRanksPlansAndEndsOrNamesTheFirstProblem) {
  const Ended ended = gpt("out", "--dry_run --strategy zero3", 2);
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(count_of(ended.output, "Running on 1 nodes x 2 ranks"), 1) << ended.output;
  EXPECT_EQ(count_of(ended.output, "4 steps of 2 x 1 rows on 2 ranks"), 1) << ended.output;
  EXPECT_EQ(count_of(ended.output, "per rank, at the peak of a step's memory"), 1) << ended.output;
  EXPECT_FALSE(fs::exists(fs::path(out("out")) / "run.json"));
  EXPECT_FALSE(fs::exists(fs::path(out("out")) / "log"));
  std::ofstream(out("empty.jsonl")) << "";
  std::ofstream(out("file")) << "";
  for (const auto& [words, message] : std::vector<std::pair<std::string, std::string>>{
           {"--train_file " + out("empty.jsonl"), "empty.jsonl"},
           {"--max_train_samples 1", "1 training rows for 2 ranks"},
           {"--train_file /no/such/file.json", "/no/such/file.json"},
           {fmt::format("--output_dir {}/x", out("file")), "cannot create the folder"},
           {"--tokenizer_name " + out("file"), out("file")},
           {"--strategy full_shard --wrap_classes NoSuchBlock", "NoSuchBlock"},
           {"--metric_for_best_model f1 --predict_with_generate false --eval_strategy epoch --validation_file " +
                kTestRows,
            "--metric_for_best_model f1: needs --predict_with_generate true"},
           {"--warmup_steps 100", "warmup_steps 100"}}) {
    const Ended bad = gpt("bad", "--dry_run " + words, 2);
    EXPECT_EQ(bad.status, 2) << words << "\n" << bad.output;
    EXPECT_TRUE(contains(bad.output, message)) << words << "\n" << bad.output;
  }
}

}  // namespace
}  // namespace tessera
