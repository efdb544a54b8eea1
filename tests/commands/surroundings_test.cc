// What surrounds a run: a reader that goes away, variables of the environment, too little memory, files it leaves.
#include <regex>

#include "commands/train_command.h"
#include "core/file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class Surroundings : public TrainCommandTest {};

// `| head -1` closes the pipe after the first line. The run goes on, saves, and says at its end that lines were lost.
TEST_F(Surroundings, ARunOutlivesTheReaderOfItsOutput) {
  for (const char* start : {"", "launch --starter mpirun --nproc_per_node 2 ", "launch --nproc_per_node 2 --tee "}) {
    const std::string name = fmt::format("run{}", std::string(start).size());
    const Ended ended =
        run_shell(fmt::format("bash -c '{} {}{} 2>{} | head -1; echo status ${{PIPESTATUS[0]}}'", binary(), start,
                              bloom_words(name, "--num_train_epochs 2"), out(name + ".err")));
    const std::string errors = read_file(out(name + ".err"));
    EXPECT_TRUE(contains(ended.output, std::string(start).ends_with("--tee ") ? "status 0" : "status 1"))
        << start << ended.output << errors;
    EXPECT_TRUE(fs::exists(folder_ / name / "model.safetensors")) << start << errors;
    EXPECT_EQ(record(name).at("status"), "finished") << start;
    if (std::string(start).ends_with("--tee ")) continue;  // the minder reads the rank's lines
    EXPECT_TRUE(contains(errors, "Broken pipe (the run continues without these lines)")) << start << errors;
  }
}

// A command whose only purpose is its output ends as `cat` does: silently, by the signal.
TEST_F(Surroundings, OtherCommandsEndWithTheirReader) {
  const Ended ended =
      run_shell(fmt::format("bash -c 'yes 1 | head -100000 | sed \"s/.*/[1,2]/\" | {} tokenize --decode --tokenizer {} "
                            "| head -1; echo status "
                            "${{PIPESTATUS[3]}}'",
                            binary(), kTestTokenizer));
  EXPECT_TRUE(contains(ended.output, "status 141")) << ended.output;
  EXPECT_FALSE(contains(ended.output, "error")) << ended.output;
}

TEST_F(Surroundings, AThreadCountThatNoHostHasIsRefusedBeforeLibgompEndsTheRun) {
  for (const char* start : {"", "launch --nproc_per_node 2 "}) {
    const Ended ended =
        run_shell(fmt::format("OMP_NUM_THREADS=100000 {} {}{}", binary(), start, bloom_words("run", "")));
    EXPECT_EQ(ended.status, 2) << ended.output;
    EXPECT_TRUE(
        contains(ended.output, "OMP_NUM_THREADS=100000 in the environment: expected a number of threads from 1 to"))
        << ended.output;
  }
  EXPECT_EQ(run_shell(fmt::format("OMP_NUM_THREADS=100000 {} env", binary())).status, 0);
  EXPECT_EQ(run_shell(fmt::format("OMP_NUM_THREADS=100000 {} --version", binary())).status, 0);
}

TEST_F(Surroundings, TrainingHeedsTheFolderOfTheTokenCache) {
  const fs::path cache = folder_ / "tokens";
  const Ended ended =
      run_shell(fmt::format("TESSERA_CACHE={} {} {}", cache.string(), binary(), bloom_words("run", "--max_steps 1")));
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_FALSE(fs::is_empty(cache));
  EXPECT_FALSE(fs::exists(folder_ / "cache" / "tessera"));  // XDG_CACHE_HOME's
}

// Two ranks repeat the 16 rows until each has a million: the kernel would kill one of them.
TEST_F(Surroundings, ABatchThatNoHostCanHoldIsRefusedByThePlan) {
  const std::string words = "--per_device_train_batch_size 1000000 --gradient_accumulation_steps 1000000";
  for (const char* merges : {"auto", "on"}) {
    const Ended ended = bloom("run", fmt::format("{} --merge_accumulation {}", words, merges), 2);
    EXPECT_EQ(ended.status, 47) << ended.output;
    EXPECT_TRUE(std::regex_search(
        ended.output,
        std::regex(
            "out of memory before the first step: the 2 ranks of this host need [0-9.]+ [TP]iB, and it has [0-9.]+ "
            "[GT]iB; the memory plan of a step \\(ddp\\)")))
        << ended.output;
  }
  const Ended dry = bloom("run", words + " --dry_run", 2);
  EXPECT_EQ(dry.status, 47) << dry.output;
  const Ended alone = bloom("alone", words);  // its 16 rows are one batch
  EXPECT_EQ(alone.status, 0) << alone.output;
}

// oneDNN's map of its compiled kernels, which it writes if it is told to (or, on ARM, not told otherwise).
TEST_F(Surroundings, LeavesNoMapForProfilers) {
  const auto leaves_map = [&](const std::string& variable) {
    // Another process may have had this number; and this one has loaded libtessera.so, which sets the variable.
    const Ended ended = run_shell(
        fmt::format("sh -c 'rm -f /tmp/perf-$$.map; echo process $$; exec env -u ONEDNN_JIT_PROFILE {} {} {}'",
                    variable, binary(), gpt_words("run", "--max_steps 2 --overwrite_output_dir")));
    EXPECT_EQ(ended.status, 0) << ended.output;
    std::smatch process;
    EXPECT_TRUE(std::regex_search(ended.output, process, std::regex("process ([0-9]+)"))) << ended.output;
    return fs::remove(fmt::format("/tmp/perf-{}.map", process[1].str()));
  };
  EXPECT_FALSE(leaves_map(""));
  if (!leaves_map("ONEDNN_JIT_PROFILE=2")) GTEST_SKIP() << "oneDNN compiles no kernel on this processor";
  EXPECT_TRUE(leaves_map("DNNL_JIT_PROFILE=2"));  // its old name is heeded, too
}

// libtorch warns on processors without bfloat16 instructions, with a backtrace of its own.
TEST_F(Surroundings, NoBacktraceOfLibtorchIsShown) {
  const Ended ended = gpt("bf16", "--bf16 --max_steps 1");
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_FALSE(contains(ended.output, "frame #")) << ended.output;
  EXPECT_FALSE(contains(ended.output, "Exception raised from")) << ended.output;
}

}  // namespace
}  // namespace tessera
