# shellcheck shell=bash
# Sourced by the benchmarks that run `tessera train bloom-qa` on a GPU. SQUAD=train-v1.1.json TOKENIZER=folder, which are
# needed; PYTHON=python3; SECONDS_EACH=60: about how long a run trains, which takes 15 to 20 minutes in all; RUNS_FOLDER:
# where runs write, and save their models at the end (36 GB for BLOOM-3b; not in memory).
# shellcheck source=bench/marks.sh
. bench/marks.sh
bench_name=$(basename "$0" .sh)
if [ ! -e /dev/nvidiactl ]; then
  echo "$bench_name: skipped, no GPU on this machine"
  exit 77
fi
if [ -z "${SQUAD:-}" ] || [ -z "${TOKENIZER:-}" ]; then
  echo "$bench_name: skipped; set SQUAD (thousands of questions) and TOKENIZER"
  exit 77
fi
tessera=${TESSERA_BUILD:-build/release}/bin/tessera
python=${PYTHON:-python3} seconds=${SECONDS_EACH:-60}
squad=$SQUAD tokenizer=$TOKENIZER
work=$(mktemp -d ${RUNS_FOLDER:+-p "$RUNS_FOLDER"})
trap 'rm -rf "$work"' EXIT
export TESSERA_CACHE=$work/cache  # tokens are made in each sitting
value_of() { "$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }
# median NAME FIELD: of all that note() was told. Fields: 1 samples/s, 2 GiB
median() { cut -d' ' -f"$2" "$work/$1.all" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
# note NAME TITLE SAMPLES GIB
note() {
  printf '%-64s %8.1f samples/s, peak %6.2f GiB\n' "$2" "$3" "$4"
  echo "$3 $4" >>"$work/$1.all"
}
# bloom_config HIDDEN LAYERS HEADS
bloom_config() {
  cat <<END
{"model_type": "bloom", "vocab_size": 250880, "hidden_size": $1, "n_layer": $2, "n_head": $3, "bos_token_id": 1,
 "eos_token_id": 2, "pad_token_id": 3, "hidden_dropout": 0.0, "attention_dropout": 0.0}
END
}
bloom_config 1024 24 16 >"$work/560m.json"

# train ARGUMENT...: into $work/run
train() {
  rm -rf "$work/run"
  "$tessera" train bloom-qa --tokenizer_name "$tokenizer" --save_strategy no --bf16 --report_to none \
    --output_dir "$work/run" "$@" >"$work/run.txt" 2>&1 || { tail -40 "$work/run.txt" >&2; exit 1; }
}
# Of the run: the median of METRIC over its logging intervals, without the first, which has the start-up in it, and without
# the last row, which is the whole run's.
settled() {
  awk -F, -v metric="train/$1" '$4 == metric && $1 != step { step = $1; if (seen++) print $5 }' "$work/run/metrics.csv" |
    sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}
peak_gib() {
  "$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["summary"]["max_mem_alloc_MB"] / 1024)' \
    "$work/run/run.json"
}
# ours NAME ABOUT_SAMPLES_PER_SECOND MODEL [ARGUMENT...]: batch 4 x accumulation 4
ours() {
  local name=$1 steps=$(($2 * seconds / 16)) model=$3
  shift 3
  [ "$steps" -gt 8 ] || steps=8
  train --config_name "$work/$model.json" --train_file "$squad" --max_steps "$steps" --per_device_train_batch_size 4 \
    --gradient_accumulation_steps 4 --learning_rate 5e-5 --logging_steps $((steps > 200 ? 50 : (steps + 3) / 4)) "$@"
  note "$name" "tessera train, $model ${*:-(loss on the answers)}" "$(settled samples_per_second)" "$(peak_gib)"
}
