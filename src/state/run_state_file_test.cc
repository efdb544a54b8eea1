#include "state/run_state_file.h"

#include <cmath>

#include "core/file.h"
#include "support/small_run.h"

namespace tessera {
namespace {

RunState some_state() {
  RunState state;
  state.progress.step = 64;
  state.progress.epoch = 2.0;
  state.shape.total_steps = 93;
  state.shape.num_train_epochs = 3;
  state.shape.logging_steps = 10;
  state.shape.eval_steps = 0.1;
  state.shape.train_batch_size = 4;
  state.progress.num_tokens_seen = 123456;
  state.progress.history = {{{"loss", 1.25}, {"epoch", 0.32}, {"step", std::int64_t{10}}},
                            {{"loss", INFINITY}, {"epoch", 0.64}, {"step", std::int64_t{20}}}};
  state.progress.best_value = 0.75;
  state.progress.best_step = 32;
  state.progress.best_checkpoint = "out/checkpoint-32";
  state.shape.early_stopping_patience = 3;
  state.shape.early_stopping_threshold = 0.5;
  state.progress.evaluations_without_gain = 1;
  state.progress.num_advanced = 60;
  state.progress.total_loss = 80.5;
  state.progress.num_losses = 62;
  state.shape.row_order = "shuffled by data_seed 7";
  state.progress.checkpoints = {32, 64};
  state.shape.num_rows = 500;
  state.shape.rows_of_update = 16;
  state.progress.position = DataPosition{2, 48};
  state.shape.started = 1700000000.5;
  return state;
}

using RunStateFile = WithFolder;

TEST_F(RunStateFile, EverythingComesBack) {
  const auto file = folder_ / "trainer_state.json";
  write_run_state(file, some_state());
  const RunState read = read_run_state(file);
  EXPECT_EQ(to_json(read), to_json(some_state()));
  EXPECT_EQ(read.progress.step, 64);
  EXPECT_EQ(read.progress.num_advanced, 60);
  EXPECT_EQ(read.progress.total_loss, 80.5);
  EXPECT_EQ(read.progress.num_losses, 62);
  EXPECT_EQ(read.shape.row_order, "shuffled by data_seed 7");
  EXPECT_EQ(read.progress.checkpoints, (std::vector<std::int64_t>{32, 64}));
  EXPECT_EQ(read.shape.num_rows, 500);
  EXPECT_EQ(read.shape.rows_of_update, 16);
  EXPECT_EQ(read.progress.position, (DataPosition{2, 48}));
  EXPECT_EQ(read.shape.started, 1700000000.5);
  EXPECT_EQ(read.progress.evaluations_without_gain, 1);
  EXPECT_EQ(read.progress.history, some_state().progress.history);
  EXPECT_EQ(read.progress.best_step, 32);
  EXPECT_EQ(read.shape.eval_steps, 0.1);
}

TEST_F(RunStateFile, KeysAreThoseOfTransformersInTheirOrder) {
  std::vector<std::string> keys;
  const Json ours = to_json(some_state());
  for (const auto& [key, value] : ours.items()) keys.push_back(key);
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  const Json theirs = train_reference("trainer_state.json", "state");
  std::vector<std::string> expected;
  for (const auto& [key, value] : theirs.items()) expected.push_back(key);
  EXPECT_EQ(keys, expected);
}

TEST_F(RunStateFile, OneThatTransformersWroteIsRead) {
  const RunState read = run_state_of(train_reference("trainer_state.json", "state"), "theirs");
  EXPECT_EQ(read.progress.step, 20);
  EXPECT_EQ(read.shape.total_steps, 60);
  EXPECT_EQ(read.shape.num_train_epochs, 6);
  EXPECT_EQ(read.progress.best_value, 3.0);
  EXPECT_EQ(read.shape.early_stopping_patience, 2);
  EXPECT_EQ(read.progress.history.size(), 4u);
  EXPECT_EQ(read.progress.history[0].number("step"), 10);
  EXPECT_EQ(read.progress.num_advanced, 20);  // the file has no other count
}

TEST_F(RunStateFile, MistakesNameTheFileAndTheKey) {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      run_state_of(parse_json(text, "s.json"), "s.json");
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("{}"), "s.json: not the state of a run: expected an object with \"global_step\"");
  EXPECT_EQ(refusal("[]"), "s.json: not the state of a run: expected an object with \"global_step\"");
  EXPECT_EQ(refusal("{\"global_step\": \"x\"}"), "s.json: \"global_step\" is \"x\", which has the wrong type");
  EXPECT_NE(refusal("{\"global_step\": 1, \"log_history\": [1]}"), "");
  EXPECT_NE(refusal("{\"global_step\": 1, \"log_history\": [{\"a\": [1]}]}"), "");
  EXPECT_EQ(refusal("{\"global_step\": 1, \"stateful_callbacks\": 3}"), "");
}

}  // namespace
}  // namespace tessera
