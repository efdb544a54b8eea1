#!/usr/bin/env bash
# Compares `tessera train bloom-qa` with Hugging Face's Trainer on one GPU: BLOOM-560M from scratch in bf16, batch 4 x
# accumulation 4, the same questions. Trainer pads to 512 tokens, as common scripts do, or to the longest row of a batch.
# All run in turn, so that a machine that slows down does so for all; medians are compared. Exits with 3 if a mark is
# missed. TURNS=3: how often each runs; gpu_runs.sh has the other variables.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=bench/gpu_runs.sh
. bench/gpu_runs.sh

rows=$((seconds > 10 ? 50 * seconds / 16 * 16 : 480))  # one epoch of Trainer's, several of ours
# theirs padded|longest
theirs() {
  "$python" bench/trainer_bench.py "$work/560m.json" "$tokenizer" "$squad" "$rows" "$1" \
    >"$work/theirs.txt" 2>"$work/theirs.err" || { tail -20 "$work/theirs.err" >&2; exit 1; }
  tail -1 "$work/theirs.txt" >"$work/theirs.json"
  note "$1" "Trainer $(value_of "$work/theirs.json" transformers), $1" \
    "$(value_of "$work/theirs.json" samples_per_second)" "$(value_of "$work/theirs.json" peak_gib)"
}

for ((turn = 0; turn < ${TURNS:-3}; ++turn)); do
  theirs padded
  ours all 600 560m --max_train_samples "$rows" --label_mode full
  ours answers 850 560m --max_train_samples "$rows"
  theirs longest
  ours one_by_one 330 560m --max_train_samples "$rows" --label_mode full --merge_accumulation off
done
padded=$(median padded 1) longest=$(median longest 1)
mark "loss on all tokens, in multiples of Trainer padded" "$(ratio "$(median all 1)" "$padded")" least 10
mark "loss on all tokens, in multiples of Trainer to the longest row" "$(ratio "$(median all 1)" "$longest")" least 9
mark "loss on the answers, in multiples of Trainer padded" "$(ratio "$(median answers 1)" "$padded")" least 14
mark "micro-batches one by one, in multiples of Trainer padded" "$(ratio "$(median one_by_one 1)" "$padded")" least 6
mark "memory, in parts of Trainer padded" "$(ratio "$(median all 2)" "$(median padded 2)")" most 0.5
mark "the same, loss on the answers" "$(ratio "$(median answers 2)" "$(median padded 2)")" most 0.5
exit "$status"
