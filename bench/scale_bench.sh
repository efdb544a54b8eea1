#!/usr/bin/env bash
# BLOOM-1b7 and 3b on one GPU by `tessera train bloom-qa`: how much of the GPU's 989 TFLOP/s (an H200's, bf16) training
# uses (6 x parameters x tokens a second, 8,192 tokens a step, rows of 512 and 2,048), by which kernels, and how long 3b
# takes to its first step and to its saved folder. Exits with 3 if a mark is missed. gpu_runs.sh has the variables.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=bench/gpu_runs.sh
. bench/gpu_runs.sh
bloom_config 2048 24 16 >"$work/1b7.json"
bloom_config 2560 30 32 >"$work/3b.json"
now() { date +%s.%N; }
since() { awk "BEGIN {printf \"%.2f\", $(now) - $1}"; }

# Questions about SQuAD's contexts, joined until they are longer than LENGTH tokens: every row is cut to it.
long_rows() {
  "$python" - "$squad" "$1" <<'END'
import json, sys
paragraphs = [p for article in json.load(open(sys.argv[1]))["data"] for p in article["paragraphs"] if p["qas"]]
rows = []
for i in range(1200):
    first = paragraphs[i % len(paragraphs)]
    context, k = first["context"], i
    while len(context) < 8 * int(sys.argv[2]):
        k += 1
        context += " " + paragraphs[k % len(paragraphs)]["context"]
    rows.append({"context": context, "qas": [dict(first["qas"][0], id=str(i))]})
json.dump({"version": "1.1", "data": [{"title": "long", "paragraphs": rows}]}, sys.stdout)
END
}

# train_long MODEL LENGTH STEPS [ARGUMENT...]
train_long() {
  train --config_name "$work/$1.json" --train_file "$work/$2.json" --max_length "$2" --label_mode full --max_steps "$3" \
    --per_device_train_batch_size $((8192 / $2)) --gradient_accumulation_steps 1 --logging_steps 12 "${@:4}"
}
traces=()
for length in 512 2048; do
  long_rows "$length" >"$work/$length.json"
  for model in 1b7 3b; do
    train_long "$model" "$length" $((seconds > 12 ? seconds * 4 : 48))
    parameters=$(sed -n 's/.*: \([0-9]*\) parameters.*/\1/p' "$work/run.txt")
    used=$(awk "BEGIN {printf \"%.4f\", 100 * 6 * $parameters * 8192 * $(settled steps_per_second) / 989e12}")
    mark "BLOOM-$model, rows of $length, percent of 989 TFLOP/s" "$used" least 60
  done
  train_long 3b "$length" 24 --profile_steps 22-23  # apart: the profiler slows the host
  mv "$work/run/trace_rank-0.json.gz" "$work/$length.trace.json.gz"
  traces+=("3b_$length=$work/$length.trace.json.gz:2")
done
"$python" tools/kernel_table.py "${traces[@]}"

# started_run ARGUMENT...: two steps; first_step: seconds from the start, saved: from the last step to the folder's last file
started_run() {
  local begin times
  begin=$(now)
  train --train_file "$work/512.json" --max_steps 2 --logging_steps 1 --max_length 512 --per_device_train_batch_size 4 "$@"
  mapfile -t times < <(awk -F, '$4 == "train/loss" { print $3 }' "$work/run/metrics.csv")
  first_step=$(awk "BEGIN {printf \"%.2f\", ${times[0]} - $begin}")
  saved=$(awk "BEGIN {printf \"%.2f\", $(stat -c %.3Z "$work/run/config.json") - ${times[1]}}")
}
started_run --config_name "$work/3b.json"
mark "BLOOM-3b from scratch, seconds to the first step" "$first_step" most 10
mv "$work/run" "$work/saved"
begin=$(now)
for file in "$work/saved"/*.safetensors; do dd if="$file" of="$work/plain" bs=16M conv=fsync status=none; done
plain=$(since "$begin")
rm "$work/plain"
echo "saving its folder: $saved s; a plain write of its weights, to the disk, takes $plain s"
mark "saving its folder, in parts of a plain write's speed" "$(ratio "$plain" "$saved")" least 0.8
begin=$(now)
cat "$work/saved"/*.safetensors >/dev/null
plain=$(since "$begin")
started_run --model_name_or_path "$work/saved"
echo "from its folder: $first_step s to the first step, with the program's and the GPU's start; a plain read takes $plain s"
mark "from its folder, in multiples of a plain read" "$(ratio "$first_step" "$plain")" most 1.5
exit "$status"
