#!/usr/bin/env bash
# demo.sh [FOLDER [EPOCHS [REASON]]]: what `./x demo` and `tessera demo` run. Two ranks, each holding half of a small
# BLOOM, train it from scratch until it knows a few dozen SQuAD questions by heart; then a few steps under two
# strategies, compared. About two minutes on two cores.
# Replaces FOLDER. With a REASON why there can be only one rank (no MPI), one trains. TESSERA is the program.
set -euo pipefail
data=$(dirname "${BASH_SOURCE[0]}")
if [ -e "$data/bloom.json" ]; then  # beside its data, as `tessera demo` has it
  is_in_repository=false
  tessera=${TESSERA:-tessera}
  if [ "$(command -v tessera || true)" -ef "$tessera" ]; then tessera=tessera; fi  # as one would type it
else
  is_in_repository=true
  cd "$data/.."
  tessera=${TESSERA:-build/release/bin/tessera}
  data=examples/demo
fi
folder=${1:-build/demo} epochs=${2:-32} why_one_rank=${3:-}
learnt=$data/train-v1.1.json unseen=$data/held_out-v1.1.json
if [ -z "$why_one_rank" ]; then
  train=("$tessera" launch --nproc_per_node 2 train)
  batch=4 who='two ranks, each keeps half of it'
else
  train=("$tessera" train)
  batch=8 who='one rank'
fi
run=("${train[@]}" bloom-qa --device cpu
  --config_name "$data/bloom.json" --tokenizer_name "$data/tokenizer" --train_file "$learnt"
  --max_length 160 --per_device_train_batch_size "$batch" --gradient_accumulation_steps 1 --learning_rate 1e-3
  --save_strategy no)
train=("${run[@]}" --strategy full_shard --validation_file "$learnt" --per_device_eval_batch_size 24
  --num_train_epochs "$epochs" --logging_steps 0.1 --eval_strategy steps --eval_steps 0.25 --eval_on_start
  --metric_for_best_model f1 --max_new_tokens 20 --output_dir "$folder")
short=("${run[@]}" --max_steps $((epochs < 24 ? 3 : 24)) --logging_steps 6 --monitor --monitor_period 1s)
evaluate=("$tessera" evaluate --device cpu --model "$folder" --validation_file "$unseen" --max_new_tokens 20 --json)
ask=("$tessera" generate --device cpu --model "$folder" --max_new_tokens 20 --prompt
  "Question: When did BBC Japan shut down? Context: BBC Japan was a general entertainment channel, which operated between December 2004 and April 2006. It ceased operations after its Japanese distributor folded. Answer:")

show() { printf '\n==> %s\n' "$1"; }
# Prints a command as one would type it, each option on one line with its value.
show_command() {
  local word line="   " piece=$1
  for word in "${@:2}" --; do
    [[ $word != *' '* ]] || word="'$word'"
    if [[ $word != -* ]]; then
      piece+=" $word"
      continue
    fi
    if ((${#line} + ${#piece} > 116)); then
      printf '%s \\\n' "$line"
      line='     '
    fi
    line+=" $piece" piece=$word
  done
  printf '%s\n' "$line"
}
# first NAME, last NAME: the first and last value of a metric of the run.
first() { awk -F, -v name="$1" '$4 == name && !n++ { printf "%.2f", $5 }' "$folder/metrics.csv"; }
last() { awk -F, -v name="$1" '$4 == name { value = $5 } END { printf "%.2f", value }' "$folder/metrics.csv"; }

# A run of somebody else's has a run.json, too, but not with these questions.
if [ -e "$folder" ] && ! grep -qs "demo/${learnt##*/}" "$folder/run.json"; then
  echo "demo: $folder exists and is not from a demo: give another folder" >&2
  exit 2
fi
rm -rf "$folder"
if [ -n "$why_one_rank" ]; then show "One rank trains instead of two: ${why_one_rank%%$'\n'*}"; fi
show "A BLOOM of 3.7 million parameters, untrained, learns 48 questions: $who"
show_command "${train[@]}"
if [ -t 1 ]; then "${train[@]}"; else "${train[@]}" --disable_tqdm; fi

show "One of the 48, asked again"
show_command "${ask[@]}"
"${ask[@]}"

show "32 questions that it has never seen"
show_command "${evaluate[@]}"
unseen_result=$("${evaluate[@]}")
echo "$unseen_result"
unseen_f1=${unseen_result#*'"f1":'}
unseen_f1=${unseen_f1%%,*}

summary="loss            $(first eval/loss) before, $(last eval/loss) after $epochs epochs
F1              $(first eval/f1) before, $(last eval/f1) after, on the 48 questions it was trained on
F1              $(printf %.2f "$unseen_f1") on 32 others: it has learnt answers by heart, not to read"
printf '%s\n' "$summary" >"$folder/summary.txt"

show "A few steps under two strategies: the same losses"
for strategy in ddp full_shard; do
  one=("${short[@]}" --strategy "$strategy" --output_dir "$folder/compared/$strategy")
  show_command "${one[@]}"
  "${one[@]}" --disable_tqdm >"$folder/$strategy.txt" 2>&1 || { cat "$folder/$strategy.txt" >&2; exit 1; }
done
compare=("$tessera" runs compare "$folder/compared/ddp" "$folder/compared/full_shard")
show_command "${compare[@]}"
"${compare[@]}"
"$tessera" report "$folder" -o "$folder/report.html" --title "The demo's runs" >/dev/null

show "What came of it"
printf '    %s\n' "${summary//$'\n'/$'\n'    }"
cat <<END_OF_TEXT

    $folder/                the model: a folder that transformers loads
    $folder/summary.txt     the three lines above
    $folder/run.json        the run: settings with their origins, last metrics (metrics.csv: all, as a table)
    $folder/report.html     all three runs on one page, with plots: open it in a browser

    To try next:
      the first command with --strategy ddp, zero2 or zero3: the same losses; with --dry_run: steps and memory
      $tessera train bloom-qa --help    for your model folder, SQuAD file, ds_config.json, env_vars.sh
      $tessera env                      what this machine offers
END_OF_TEXT
if $is_in_repository; then echo '      ./x test                                           every test'; fi
