#!/usr/bin/env bash
# Compares `tessera train bloom-qa` with Hugging Face's Trainer on one GPU: BLOOM-560M from scratch, batch 4 x
# accumulation 4, the same rows. Trainer pads to 512 tokens, as common scripts do; it also runs padded to the longest
# row of each batch. SQUAD=file.json TOKENIZER=folder ROWS=1280 PYTHON=python3
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ ! -e /dev/nvidiactl ]; then
  echo "trainer_bench: skipped, no GPU on this machine"
  exit 0
fi
tessera=${TESSERA_BUILD:-build/release}/bin/tessera
python=${PYTHON:-python3}
squad=${SQUAD:-tests/data/squad/sample.jsonl} tokenizer=${TOKENIZER:-tests/data/squad/tokenizer} rows=${ROWS:-1280}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
# mark NAME VALUE least|most LIMIT
mark() {
  local verdict=met sign='>='
  [ "$3" = least ] || sign='<='
  awk "BEGIN {exit !($2 $sign $4)}" || { verdict=missed; status=3; }
  echo "mark: $1: $2 (at $3 $4): $verdict"
}
ratio() { awk "BEGIN {printf \"%.2f\", $1 / $2}"; }
value_of() { "$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }
cat >"$work/config.json" <<'END'
{"model_type": "bloom", "vocab_size": 250880, "hidden_size": 1024, "n_layer": 24, "n_head": 16, "bos_token_id": 1,
 "eos_token_id": 2, "pad_token_id": 3, "hidden_dropout": 0.0, "attention_dropout": 0.0}
END

# ours NAME TYPE [ARGUMENT...]: sets samples, peak
ours() {
  local name=$1 type=$2
  shift 2
  "$tessera" train bloom-qa --config_name "$work/config.json" --tokenizer_name "$tokenizer" --train_file "$squad" \
    --max_train_samples "$rows" --num_train_epochs 1 --per_device_train_batch_size 4 --gradient_accumulation_steps 4 \
    --learning_rate 5e-5 --logging_steps 10 --save_strategy no "--$type" --output_dir "$work/run" "$@" \
    >"$work/ours.txt" 2>&1 || { cat "$work/ours.txt" >&2; exit 1; }
  samples=$(sed -n "s/.*'train_samples_per_second': \([0-9.]*\).*/\1/p" "$work/ours.txt")
  peak=$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["summary"]["max_mem_alloc_MB"] / 1024)' \
    "$work/run/run.json")
  printf '%-44s %8.1f samples/s, peak %6.2f GiB\n' "tessera, $type, $name" "$samples" "$peak"
  rm -rf "$work/run"
}

# theirs TYPE PADDING: sets their_samples, their_peak
theirs() {
  "$python" bench/trainer_bench.py "$work/config.json" "$tokenizer" "$squad" "$rows" "$1" "$2" \
    >"$work/theirs.txt" 2>"$work/theirs.err" || { tail -20 "$work/theirs.err" >&2; exit 1; }
  tail -1 "$work/theirs.txt" >"$work/theirs.json"
  their_samples=$(value_of "$work/theirs.json" samples_per_second)
  their_peak=$(value_of "$work/theirs.json" peak_gib)
  printf '%-44s %8.1f samples/s, peak %6.2f GiB\n' "Trainer $(value_of "$work/theirs.json" transformers), $1, $2" \
    "$their_samples" "$their_peak"
}

for type in bf16 fp16; do
  theirs "$type" longest
  theirs "$type" padded
  ours "every token counts" "$type" --label_mode full
  ours "micro-batches one by one" "$type" --merge_accumulation off
  ours "as it comes" "$type"
  mark "$type: samples/s in multiples of Trainer's" "$(ratio "$samples" "$their_samples")" least 3
  mark "$type: memory in parts of Trainer's" "$(ratio "$peak" "$their_peak")" most 0.6
done
exit "$status"
