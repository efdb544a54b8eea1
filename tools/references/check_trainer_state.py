#!/usr/bin/env python3
"""Checks that transformers' TrainerState loads the trainer_state.json that Tessera writes.

Run: $(tools/references/venv.sh) tools/references/check_trainer_state.py build/release/bin/train_core_test   (or a file)
"""
import glob
import os
import subprocess
import sys
import tempfile

from transformers import TrainerState

if sys.argv[1].endswith(".json"):
    print(TrainerState.load_from_json(sys.argv[1]))
    sys.exit()
with tempfile.TemporaryDirectory() as folder:
    subprocess.check_call([sys.argv[1], "--gtest_filter=RunStateFile.Everything*", "--gtest_brief=1"],
                          env={**os.environ, "TESSERA_EVENT_FILES": folder}, stdout=subprocess.DEVNULL)
    (file,) = glob.glob(f"{folder}/*/trainer_state.json")
    state = TrainerState.load_from_json(file)
assert (state.global_step, state.epoch, state.max_steps, state.num_train_epochs) == (64, 2.0, 93, 3), state
assert (state.best_metric, state.best_global_step, state.best_model_checkpoint) == (0.75, 32, "out/checkpoint-32"), state
assert state.log_history[0] == {"loss": 1.25, "epoch": 0.32, "step": 10}, state
assert state.stateful_callbacks["EarlyStoppingCallback"]["attributes"]["early_stopping_patience_counter"] == 1, state
print("transformers loads our trainer_state.json")
