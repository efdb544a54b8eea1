#!/usr/bin/env bash
# Measures what checkpoints cost a run of `tessera train`: how long training stands still for one, how much slower it is
# while the background writes, and writing beside a plain write of the same bytes. On a GPU: BLOOM-560M in bf16, also where
# the GPU has no room for a copy; else the demo's model. Exits with 3 if a mark is missed. CHECKPOINT_FOLDER: where to
# write. PYTHON: one with torch, to fill the GPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=bench/marks.sh
. bench/marks.sh
tessera=${TESSERA_BUILD:-build/release}/bin/tessera
folder=$(mktemp -d "${CHECKPOINT_FOLDER:-build}/checkpoint_bench.XXXXXX")
filler=
trap 'rm -rf "$folder"; [ -z "$filler" ] || kill "$filler" || true' EXIT
config=examples/demo/bloom.json device=cpu every=40 more=()
if [ -e /dev/nvidiactl ]; then
  config=$folder/config.json device=cuda every=400 more=(--bf16)
  cat >"$config" <<'END_OF_CONFIG'
{"model_type": "bloom", "vocab_size": 250880, "hidden_size": 1024, "n_layer": 24, "n_head": 16, "bos_token_id": 1,
 "eos_token_id": 2, "pad_token_id": 3, "hidden_dropout": 0.0, "attention_dropout": 0.0}
END_OF_CONFIG
fi

# train NAME CHECKPOINTS ARGUMENTS...: the first and the last checkpoint are not measured.
train() {
  "$tessera" train bloom-qa --device "$device" --config_name "$config" --tokenizer_name examples/demo/tokenizer \
    --train_file examples/demo/train-v1.1.json --max_length 160 --per_device_train_batch_size 16 \
    --gradient_accumulation_steps 1 --max_steps $(($2 * every)) --logging_steps 1 --disable_tqdm --report_to none \
    ${more[@]+"${more[@]}"} --output_dir "$folder/$1" "${@:3}" >"$folder/$1.txt" 2>&1 ||
    { tail -n 5 "$folder/$1.txt" >&2; exit 1; }
}
# figures NAME: milliseconds of a usual step, of the longest stand-still after a save but the first (which makes its
# buffers), and the mean step of the first third after a save. A usual step is the mean of the last third before the next
# save: the same run, seconds apart, because shared machines drift from run to run.
figures() {
  awk -F, -v every="$every" '$4 == "train/loss" { time[$1] = $3; last = $1 }
    END {
      for (save = 2 * every; save + every <= last; save += every) {
        for (step = save + 2; step <= save + every / 3; ++step) { beside += time[step] - time[step - 1]; ++b }
        for (step = save + int(2 * every / 3) + 1; step <= save + every; ++step) { usual += time[step] - time[step - 1]; ++u }
        if (time[save + 1] - time[save] > longest) longest = time[save + 1] - time[save]
      }
      printf "%.2f %.1f %.2f\n", 1000 * usual / u, 1000 * (longest - usual / u), 1000 * beside / b
    }' "$folder/$1/metrics.csv"
}

# Leaves 14 GiB of the GPU's memory to others, and prints how many milliseconds a plain copy of $1 bytes to page-locked
# memory takes; until it is killed.
fill_gpu() {
  exec "${PYTHON:-python3}" - "$1" <<'END_OF_PYTHON'
import sys, time, torch
host = torch.empty(1 << 30, dtype=torch.uint8, pin_memory=True)
held = torch.empty(torch.cuda.mem_get_info()[0] - (14 << 30), dtype=torch.uint8, device="cuda")
for turn in range(2):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    host.copy_(held[: host.numel()], non_blocking=True)
    torch.cuda.synchronize()
print((time.perf_counter() - begin) * 1000 * int(sys.argv[1]) / host.numel(), flush=True)
time.sleep(3600)
END_OF_PYTHON
}

saving=(--save_strategy steps --save_steps "$every" --save_total_limit 1)
train async 7 "${saving[@]}"
read -r usual still beside < <(figures async)
rm -rf "$folder/async"
train disabled 3 "${saving[@]}" --save_mode disabled
read -r _ written _ < <(figures disabled)
bytes=$(du -scb "$folder"/disabled/checkpoint-* | tail -n 1 | cut -f1)
begin=$(date +%s%N)
dd if="$(find "$folder/disabled" -name 'state-*.safetensors')" of="$folder/plain" bs=16M conv=fsync status=none
plain=$((($(date +%s%N) - begin) / 1000000))
rm -rf "$folder/disabled" "$folder/plain"
if [ "$device" = cuda ]; then
  fill_gpu "$bytes" >"$folder/copy.txt" &
  filler=$!
  until [ -s "$folder/copy.txt" ]; do
    kill -0 "$filler" || exit 1
    sleep 0.2
  done
  train full 5 "${saving[@]}"
  kill "$filler"
  filler=
  read -r usual_full still_full _ < <(figures full)
  copy=$(cat "$folder/copy.txt")
  rm -rf "$folder/full"
fi
printf 'a checkpoint has %d MB; a step takes %s ms\n' $((bytes / 1000000)) "$usual"
printf 'async: training stands still for %s ms, then a step takes %s ms while it is written\n' "$still" "$beside"
printf 'disabled: training stands still for %s ms; a plain write of its state takes %s ms\n' "$written" "$plain"
if [ "$device" = cuda ]; then
  printf 'where the GPU has no room for a copy: %s ms; a plain copy to the host takes %.1f ms\n' "$still_full" "$copy"
  # Forward and backward are four fifths of a step.
  most=$(awk -v c="$copy" -v s="$usual_full" 'BEGIN { printf "%.1f", 1.1 * (c > 0.8 * s ? c - 0.8 * s : 0) }')
fi
[ "$device" = cpu ] || mark "milliseconds that training stands still" "$still" most 50
[ "$device" = cpu ] || mark "the same where the GPU has no room for a copy" "$still_full" most "$most"
[ "$device" = cpu ] || mark "a step while the background writes, of one without" "$(ratio "$beside" "$usual")" most 1.02
[ "$device" = cpu ] || mark "speed of writing, of a plain write's" "$(ratio "$plain" "$written")" least 0.9
exit "$status"
