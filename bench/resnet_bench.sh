#!/usr/bin/env bash
# ResNet-50's training steps on a GPU, beside a plain libtorch loop in the same run. Arguments: [fp16|bf16] [batch].
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ ! -e /dev/nvidiactl ]; then
  echo "resnet_bench: skipped, there is no GPU here"
  exit 0
fi
exec "${TESSERA_BUILD:-build/release}/bin/resnet_bench" "$@"
