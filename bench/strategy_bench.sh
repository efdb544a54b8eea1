#!/usr/bin/env bash
# What strategies, recomputation, determinism and offload cost `tessera train bloom-qa` on one GPU, by the command with
# its defaults. Those that are compared with the single strategy run in turn with it. Exits with 3 if a mark is missed.
# TURNS=3: how often each of them runs; WITH_7B=1: also BLOOM-7.1B, which needs 125 GiB of host memory; gpu_runs.sh has
# the other variables.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=bench/gpu_runs.sh
. bench/gpu_runs.sh

for ((turn = 0; turn < ${TURNS:-3}; ++turn)); do
  ours single 600 560m --label_mode full
  ours full_shard 600 560m --label_mode full --strategy full_shard
  ours recomputing 500 560m --label_mode full --gradient_checkpointing
  ours deterministic 580 560m --label_mode full --full_determinism
done
# predicted NAME MODEL ARGUMENT...: --predict_speed beside what NAME has measured
predicted() {
  local name=$1 model=$2 expected
  shift 2
  train --config_name "$work/$model.json" --train_file "$squad" --per_device_train_batch_size 4 \
    --gradient_accumulation_steps 4 --dry_run --predict_speed "$@"
  expected=$(sed -n 's/^expected: \([0-9.]*\) .*/\1/p' "$work/run.txt")
  [ -n "$expected" ] || { cat "$work/run.txt" >&2; exit 1; }
  echo "  --predict_speed expects $expected samples/s"
  ratio "$expected" "$(median "$name" 1)" >"$work/$name.predicted"
}
offloaded() {
  local name=$1 about=$2 model=$3
  shift 3
  ours "$name" "$about" "$model" "$@"
  predicted "$name" "$model" "$@"
}
predicted single 560m --label_mode full
offloaded zero2 110 560m --label_mode full --strategy zero2 --offload_optimizer
offloaded zero2_6 200 560m --label_mode full --strategy zero2 --offload_optimizer --gpu_memory 6.5G
offloaded zero2_8 500 560m --label_mode full --strategy zero2 --offload_optimizer --gpu_memory 8.5G
offloaded zero3 105 560m --label_mode full --strategy zero3 --offload_optimizer --offload_param

of_single() { ratio "$(median "$1" 1)" "$(median single 1)"; }
mark "full_shard on one rank, of single" "$(of_single full_shard)" least 0.97
mark "gradient checkpointing, of single" "$(of_single recomputing)" least 0.75
mark "--full_determinism, of single" "$(of_single deterministic)" least 0.85
mark "zero2, offloaded optimizer, samples/s" "$(median zero2 1)" least 105
mark "the same, GiB" "$(median zero2 2)" most 4
mark "the same with --gpu_memory 6.5G, samples/s" "$(median zero2_6 1)" least 150
mark "the same with --gpu_memory 8.5G, samples/s" "$(median zero2_8 1)" least 230
mark "zero3, all offloaded, samples/s" "$(median zero3 1)" least 100
# check_prediction NAME WORDS
check_prediction() {
  local off
  off=$(awk "BEGIN {d = $(cat "$work/$1.predicted") - 1; print (d < 0 ? -d : d)}")
  mark "--predict_speed, $2, away from the measured speed" "$off" most 0.15
}
check_prediction single "single"
check_prediction zero2 "zero2 offloaded"
check_prediction zero2_6 "zero2 with 6.5G"
check_prediction zero2_8 "zero2 with 8.5G"
check_prediction zero3 "zero3 offloaded"
if [ "${WITH_7B:-}" = 1 ]; then
  bloom_config 4096 30 32 >"$work/7b1.json"
  offloaded large 10 7b1 --label_mode full --strategy zero3 --offload_optimizer --offload_param
  mark "zero3, all offloaded, BLOOM-7.1B, samples/s (1.5 times 6.8)" "$(median large 1)" least 10.2
  check_prediction large "BLOOM-7.1B"
fi
exit "$status"
