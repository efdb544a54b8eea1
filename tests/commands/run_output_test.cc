// What a run shows while it trains, and the output folder that it leaves alone.
#include <string_view>

#include "commands/train_command.h"
#include "core/file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

using RunOutput = TrainCommandTest;

// Every name in the folder with its time.
std::string listing(const std::string& folder) {
  return run_shell("cd " + folder + " && find . -printf '%p %T@\\n' | sort").output;
}

TEST_F(RunOutput, AFinishedModelIsNotReplacedUnlessThatIsAskedFor) {
  const Ended first = gpt("out", "--max_steps 2 --save_strategy steps --save_steps 2");
  ASSERT_EQ(first.status, 0) << first.output;
  const std::string before = listing(out("out"));
  for (const char* words : {"", "--monitor", "--resume_from_checkpoint false", "--dry_run"}) {
    const Ended refused = gpt("out", std::string("--max_steps 3 ") + words, 2);
    EXPECT_EQ(refused.status, 2) << words << refused.output;
    EXPECT_TRUE(contains(refused.output, "holds a finished model, model.safetensors")) << words << refused.output;
    EXPECT_EQ(listing(out("out")), before) << words;
  }
  const Ended launched =
      run_tessera("launch --nproc_per_node 2 " + gpt_words("out", "--max_steps 3 --monitor --strategy ddp"));
  EXPECT_EQ(launched.status, 2) << launched.output;
  EXPECT_EQ(listing(out("out")), before);
  const Ended resumed = gpt("out", "--max_steps 3 --resume_from_checkpoint true");
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  const Ended replaced = gpt("out", "--max_steps 3 --overwrite_output_dir");
  EXPECT_EQ(replaced.status, 0) << replaced.output;
  EXPECT_EQ(logged(replaced.output, "loss").size(), 3U) << replaced.output;
}

TEST_F(RunOutput, ARunBesideCheckpointsOfAStoppedOneStartsAnewAndSaysSo) {
  ASSERT_EQ(gpt("out", "--max_steps 2 --save_strategy steps --save_steps 2").status, 0);
  fs::remove(folder_ / "out" / "model.safetensors");  // as if it had been stopped
  const Ended anew = gpt("out", "--max_steps 3");
  EXPECT_EQ(anew.status, 0) << anew.output;
  EXPECT_EQ(count_of(anew.output, "has checkpoints of an earlier run: this one starts anew"), 1) << anew.output;
  EXPECT_EQ(logged(anew.output, "loss").size(), 3U) << anew.output;
}

TEST_F(RunOutput, AShortRunShowsItsLossTenTimes) {
  const std::string words = fmt::format(
      "train bloom-qa --device cpu --disable_tqdm --report_to none --config_name {} --tokenizer_name {} --train_file "
      "{} --max_length 160 --per_device_train_batch_size 2 --gradient_accumulation_steps 1 --save_strategy steps "
      "--save_steps 20 --max_steps 20 --output_dir ",
      kTestConfig, kTestTokenizer, kTestRows);
  const Ended unset = run_tessera(words + out("unset"));
  ASSERT_EQ(unset.status, 0) << unset.output;
  EXPECT_EQ(logged(unset.output, "loss").size(), 10U) << unset.output;
  EXPECT_EQ(read_json_file(folder_ / "unset/checkpoint-20/trainer_state.json").at("logging_steps"), 2);
  const Ended chosen = run_tessera(words + out("chosen") + " --logging_steps 500");
  ASSERT_EQ(chosen.status, 0) << chosen.output;
  EXPECT_EQ(logged(chosen.output, "loss").size(), 0U) << chosen.output;
}

// A terminal by script(1): the bar, then lines of the log, which begin at the terminal's left.
TEST_F(RunOutput, OnATerminalLinesOfTheLogDoNotStickToTheBar) {
  if (run_shell("command -v script").status != 0) GTEST_SKIP() << "needs script(1)";
  std::string words = gpt_words("out", "--fp16 --initial_scale_power 22 --num_train_epochs 5");
  words.erase(words.find("--disable_tqdm "), 15);
  const Ended ended = run_shell(fmt::format("script -qec '{} {}' /dev/null", binary(), words));
  ASSERT_EQ(ended.status, 0) << ended.output;
  ASSERT_TRUE(contains(ended.output, "%|")) << "no bar:\n" << ended.output;
  ASSERT_TRUE(contains(ended.output, "skipping the update")) << ended.output;
  const std::string bars = ended.output.substr(ended.output.find("%|"));
  for (std::size_t at = bars.find(" rank 0 "); at != std::string::npos; at = bars.find(" rank 0 ", at + 1)) {
    ASSERT_GE(at, 12U);
    const std::string_view before = std::string_view(bars).substr(0, at - 12);  // the time
    EXPECT_TRUE(before.ends_with("\n") || before.ends_with("\x1b[2K")) << before.substr(before.rfind('\r'));
  }
  EXPECT_TRUE(contains(ended.output, "rank 0 \x1b[33mwarn")) << ended.output;
}

TEST_F(RunOutput, ColoursAreForTerminalsThatWantThem) {
  if (run_shell("command -v script").status != 0) GTEST_SKIP() << "needs script(1)";
  const auto mistake = [&](const char* variables) {
    return run_shell(fmt::format("{} script -qec '{} nothing' /dev/null", variables, binary())).output;
  };
  const std::string plain = "tessera: error: unknown command";
  EXPECT_TRUE(contains(mistake("TERM=xterm"), "tessera: \x1b[31merror:\x1b[0m unknown command"));
  EXPECT_TRUE(contains(mistake("TERM=xterm NO_COLOR=1"), plain));
  EXPECT_TRUE(contains(mistake("TERM=dumb"), plain));
  EXPECT_TRUE(contains(run_tessera("nothing").output, plain));
}

}  // namespace
}  // namespace tessera
