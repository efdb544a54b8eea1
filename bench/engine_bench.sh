#!/usr/bin/env bash
# Measures the engine's overhead over a plain libtorch loop with the same kernels; on a GPU also strategies and offload.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=bench/marks.sh
. bench/marks.sh
parts=(overhead breakdown)
[ ! -e /dev/nvidiactl ] || parts+=(gpu)
for part in "${parts[@]}"; do
  marked "${TESSERA_BUILD:-build/release}/bin/engine_bench" "$part"
done
exit "$status"
