#!/usr/bin/env bash
# Training steps of ResNet-50 on a GPU, next to a plain libtorch loop in the same run. Arguments: [fp16|bf16] [batch].
# Without them, and with PICTURES=folder (laid out like TinyImageNet and as large: 100,000 pictures, an epoch of 13 s), also
# `tessera train resnet-tinyimagenet` from its JPEG files, with the command's defaults but no validation. Exits with 3 if a
# mark is missed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=bench/marks.sh
. bench/marks.sh
if [ ! -e /dev/nvidiactl ]; then
  echo "resnet_bench: skipped, no GPU on this machine"
  exit 77
fi
programs=${TESSERA_BUILD:-build/release}/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
synthetic() { "$programs/resnet_bench" "$@" | tee "$work/synthetic.txt"; }
marked synthetic "$@"
if [ -z "${PICTURES:-}" ] || [ $# -gt 0 ]; then
  echo "from JPEG files: skipped; set PICTURES, and no arguments"
  exit "$status"
fi
"$programs/tessera" train resnet-tinyimagenet --data_dir "$PICTURES" --num_train_epochs 2 --eval_strategy no \
  --report_to none --output_dir "$work/run" >"$work/run.txt" 2>&1 || { tail -40 "$work/run.txt" >&2; exit 1; }
without_files=$(sed -n "s/^tessera's engine *\([0-9]*\) img.*/\1/p" "$work/synthetic.txt")
# The last epoch: the first one reads the files into the page cache.
decoded=$(sed -n 's/.*Throughput: \([0-9.]*\) img.*/\1/p' "$work/run.txt" | tail -1)
echo "tessera train resnet-tinyimagenet from JPEG files, second epoch: $decoded images/s"
mark "from JPEG files, of the speed of synthetic pictures" "$(ratio "$decoded" "$without_files")" least 0.95
exit "$status"
