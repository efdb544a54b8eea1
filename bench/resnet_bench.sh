#!/usr/bin/env bash
# Training steps of ResNet-50 on a GPU, next to a plain libtorch loop in the same run. Arguments: [fp16|bf16] [batch].
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ ! -e /dev/nvidiactl ]; then
  echo "resnet_bench: skipped, no GPU on this machine"
  exit 77
fi
exec "${TESSERA_BUILD:-build/release}/bin/resnet_bench" "$@"
