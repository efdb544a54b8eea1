#!/usr/bin/env bash
# Saves and loads the whole state of BLOOM-560M (6.7 GB) with `tessera train` on 1, 2 and 4 ranks, beside a plain write and
# read of the same bytes by as many processes, and shows the time from starting the command to the end of its first step.
# On a GPU in bf16; the ranks share it. Exits with 3 if a mark is missed. CHECKPOINT_FOLDER: where to write; RANKS.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=bench/marks.sh
. bench/marks.sh
tessera=${TESSERA_BUILD:-build/release}/bin/tessera
folder=$(mktemp -d "${CHECKPOINT_FOLDER:-build}/checkpoint_ranks_bench.XXXXXX")
held=/dev/shm/$(basename "$folder")
trap 'rm -rf "$folder" "$held"' EXIT
device=cpu more=()
[ ! -e /dev/nvidiactl ] || device=cuda more=(--bf16 --backend mpi)
cat >"$folder/config.json" <<'END_OF_CONFIG'
{"model_type": "bloom", "vocab_size": 250880, "hidden_size": 1024, "n_layer": 24, "n_head": 16, "bos_token_id": 1,
 "eos_token_id": 2, "pad_token_id": 3, "hidden_dropout": 0.0, "attention_dropout": 0.0}
END_OF_CONFIG

# train RANKS ARGUMENTS...
train() {
  local ranks=$1 strategy=zero3
  shift
  [ "$ranks" != 1 ] || strategy=single
  OMPI_MCA_mpi_yield_when_idle=1 "$tessera" launch --starter mpirun --nproc_per_node "$ranks" train bloom-qa --device "$device" --share_gpus \
    --config_name "$folder/config.json" --tokenizer_name examples/demo/tokenizer --train_file examples/demo/train-v1.1.json \
    --max_length 64 --per_device_train_batch_size 1 --gradient_accumulation_steps 1 --logging_steps 1 --disable_tqdm \
    --report_to none --strategy "$strategy" ${more[@]+"${more[@]}"} --output_dir "$folder/run" "$@" \
    >"$folder/log" 2>&1 || { tail -n 5 "$folder/log" >&2; exit 1; }
}

now() { date +%s.%N; }
per_second() { awk -v bytes="$1" -v seconds="$2" 'BEGIN { printf "%.2f", bytes / seconds / 1e9 }'; }

# plain write|read RANKS: seconds for as many processes, a file each. Not zeros: a disk may treat those in its own way.
plain() {
  local begin i
  begin=$(now)
  for ((i = 0; i < $2; ++i)); do
    if [ "$1" = write ]; then
      dd if="$(printf '%s/run/checkpoint-1/state-%05d-of-%05d.safetensors' "$folder" "$i" "$2")" of="$folder/plain$i" bs=16M \
        conv=fsync status=none &
    else
      dd if="$folder/plain$i" of=/dev/null bs=16M status=none &
    fi
  done
  wait
  awk -v begin="$begin" -v end="$(now)" 'BEGIN { print end - begin }'
}

printf '%-5s  %21s  %21s  %s\n' ranks 'save, plain write GB/s' 'load, plain read GB/s' 'start to first step'
for ranks in ${RANKS:-1 2 4}; do
  train "$ranks" --max_steps 1 --save_strategy steps --save_steps 1 --save_mode disabled
  bytes=$(du -sb "$folder/run/checkpoint-1" | cut -f1)
  saved=$(sed -n 's/.*checkpoint-1: .* written in \([0-9.]*\) s.*/\1/p' "$folder/log")
  rm -f "$folder/run/model.safetensors"
  # A host with less free memory writes more slowly: what the ranks held while they saved (on CPUs the state, and as much
  # again as the parameters for gradients) is held beside the plain write, too.
  [ "$device" = cuda ] || dd if=/dev/zero of="$held" bs=16M count=$((bytes * 4 / 3 / 16777216)) status=none
  written=$(plain write "$ranks")
  rm -f "$held"
  begin=$(now)
  train "$ranks" --max_steps 2 --save_strategy no --resume_from_checkpoint true
  first=$(awk -F, -v begin="$begin" '$4 == "train/loss" { last = $3 - begin } END { printf "%.1f", last }' "$folder/run/metrics.csv")
  loaded=$(sed -n 's/.*checkpoint-1: read in \([0-9.]*\) s.*/\1/p' "$folder/log")
  read=$(plain read "$ranks")
  printf '%-5s  %10s %10s  %10s %10s  %s s\n' "$ranks" "$(per_second "$bytes" "$saved")" "$(per_second "$bytes" "$written")" \
    "$(per_second "$bytes" "$loaded")" "$(per_second "$bytes" "$read")" "$first"
  mark "saving, ranks: $ranks, of a plain write" "$(ratio "$written" "$saved")" least 0.9
  rm -rf "$folder"/run "$folder"/plain*
done
exit "$status"
