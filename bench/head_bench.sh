#!/usr/bin/env bash
# The head of BLOOM-560M with its loss, forward and backward, one thread. Alternates between Tessera's chunked version,
# plain logits + cross-entropy in C++, and the same in Python. ROWS=256 TURNS=2 CLASSES=250880 by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=bench/marks.sh
. bench/marks.sh
program=${TESSERA_BUILD:-build/release}/bin/head_bench
python=$(tools/references/venv.sh)
export OMP_NUM_THREADS=1
rows=${ROWS:-256} classes=${CLASSES:-250880} width=1024 turns=${TURNS:-2}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
best() { sort -g "$1" | head -1 | cut -d' ' -f1; }

# compare TYPE COUNTED: sets ours, plain, original (seconds) and memory (ours as a fraction of plain's).
compare() {
  rm -f "$work"/*
  for ((i = 0; i < turns; ++i)); do
    "$program" chunked "$rows" "$classes" "$width" "$1" "$2" >>"$work/ours"
    "$program" plain "$rows" "$classes" "$width" "$1" "$2" >>"$work/plain"
    "$python" bench/head_bench.py "$rows" "$classes" "$width" "$1" "$2" >>"$work/original"
  done
  ours=$(best "$work/ours") plain=$(best "$work/plain") original=$(best "$work/original")
  read -r _ ours_bytes ours_loss < <(tail -1 "$work/ours")
  read -r _ plain_bytes plain_loss < <(tail -1 "$work/plain")
  read -r _ original_loss < <(tail -1 "$work/original")
  echo "$1, $rows rows x $classes classes x $width, $2 of the rows counted:"
  echo "  ours, in chunks  $ours s, $((ours_bytes >> 20)) MiB beyond inputs and gradients, loss $ours_loss"
  echo "  plain, C++       $plain s, $((plain_bytes >> 20)) MiB, loss $plain_loss"
  echo "  plain, Python    $original s, loss $original_loss"
  awk "BEGIN {d = $ours_loss - $original_loss; exit !(d * d < 0.0001)}" ||
    { echo "head_bench: the losses differ" >&2; exit 1; }
  memory=$(ratio "$ours_bytes" "$plain_bytes")
}
# Only memory has a limit: nothing larger than the chunk besides the gradients. Time is only reported.
chunk_bytes=$((64 << 20))
show() {
  echo "  ratio: times as fast as plain in C++ $(ratio "$plain" "$ours"), as Python $(ratio "$original" "$ours")"
  echo "  ratio: memory in parts of plain logits' $memory"
}
compare fp32 1
show
mark "head + loss, fp32, memory beyond inputs and gradients, in chunks" "$(ratio "$ours_bytes" "$chunk_bytes")" most 1.1
compare fp32 0.1
show
compare bf16 1
show
mark "head + loss, bf16, memory beyond inputs and gradients, in chunks" "$(ratio "$ours_bytes" "$chunk_bytes")" most 1.1
exit "$status"
