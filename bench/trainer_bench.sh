#!/usr/bin/env bash
# Compares `tessera train bloom-qa` with Hugging Face's Trainer on one GPU: BLOOM-560M from scratch in bf16, batch 4 x
# accumulation 4, the same questions. Trainer pads to 512 tokens, as common scripts do, or to the longest row of a batch.
# All run in turn, so that a machine that slows down does so for all; medians are compared. Exits with 3 if a mark is
# missed. SQUAD=train-v1.1.json TOKENIZER=folder, which are needed; PYTHON=python3; TURNS=3, SECONDS_EACH=60: how often and about how long each runs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ ! -e /dev/nvidiactl ]; then
  echo "trainer_bench: skipped, no GPU on this machine"
  exit 0
fi
if [ -z "${SQUAD:-}" ] || [ -z "${TOKENIZER:-}" ]; then
  echo "trainer_bench: skipped; set SQUAD (thousands of questions) and TOKENIZER"
  exit 0
fi
tessera=${TESSERA_BUILD:-build/release}/bin/tessera
python=${PYTHON:-python3} turns=${TURNS:-3} seconds=${SECONDS_EACH:-60}
squad=$SQUAD tokenizer=$TOKENIZER
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
# median NAME FIELD: of all turns. Fields: 1 samples/s, 2 GiB
median() { cut -d' ' -f"$2" "$work/$1.all" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
# note NAME TITLE SAMPLES GIB
note() {
  printf '%-52s %8.1f samples/s, peak %6.2f GiB\n' "$2" "$3" "$4"
  echo "$3 $4" >>"$work/$1.all"
}
cat >"$work/config.json" <<'END'
{"model_type": "bloom", "vocab_size": 250880, "hidden_size": 1024, "n_layer": 24, "n_head": 16, "bos_token_id": 1,
 "eos_token_id": 2, "pad_token_id": 3, "hidden_dropout": 0.0, "attention_dropout": 0.0}
END

# ours NAME ABOUT_SAMPLES_PER_SECOND [ARGUMENT...]
ours() {
  local name=$1 steps=$(($2 * seconds / 16))
  shift 2
  "$tessera" train bloom-qa --config_name "$work/config.json" --tokenizer_name "$tokenizer" --train_file "$squad" \
    --max_steps "$steps" --per_device_train_batch_size 4 --gradient_accumulation_steps 4 --learning_rate 5e-5 \
    --logging_steps 100 --save_strategy no --bf16 --output_dir "$work/run" "$@" >"$work/ours.txt" 2>&1 ||
    { cat "$work/ours.txt" >&2; exit 1; }
  note "$name" "tessera train ${*:-(loss on the answers)}" \
    "$(sed -n "s/.*'train_samples_per_second': \([0-9.]*\).*/\1/p" "$work/ours.txt")" \
    "$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["summary"]["max_mem_alloc_MB"] / 1024)' \
      "$work/run/run.json")"
  rm -rf "$work/run"
}

# theirs padded|longest
theirs() {
  "$python" bench/trainer_bench.py "$work/config.json" "$tokenizer" "$squad" $((50 * seconds)) "$1" \
    >"$work/theirs.txt" 2>"$work/theirs.err" || { tail -20 "$work/theirs.err" >&2; exit 1; }
  tail -1 "$work/theirs.txt" >"$work/theirs.json"
  note "$1" "Trainer $(value_of "$work/theirs.json" transformers), $1" \
    "$(value_of "$work/theirs.json" samples_per_second)" "$(value_of "$work/theirs.json" peak_gib)"
}

for ((turn = 0; turn < turns; ++turn)); do
  theirs padded
  ours all 540 --label_mode full
  ours answers 720
  theirs longest
  ours one_by_one 250 --label_mode full --merge_accumulation off
done
padded=$(median padded 1) longest=$(median longest 1)
mark "loss on all tokens, in multiples of Trainer padded" "$(ratio "$(median all 1)" "$padded")" least 10
mark "loss on all tokens, in multiples of Trainer to the longest row" "$(ratio "$(median all 1)" "$longest")" least 9
mark "loss on the answers, in multiples of Trainer padded" "$(ratio "$(median answers 1)" "$padded")" least 14
mark "micro-batches one by one, in multiples of Trainer padded" "$(ratio "$(median one_by_one 1)" "$padded")" least 6
mark "memory, in parts of Trainer's" "$(ratio "$(median all 2)" "$(median padded 2)")" most 0.5
exit "$status"
