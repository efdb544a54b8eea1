#!/usr/bin/env bash
# Measures the engine's overhead over a plain libtorch loop with the same kernels; on a GPU also strategies and offload.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
program=${TESSERA_BUILD:-build/release}/bin/engine_bench
status=0
"$program" overhead || status=$?
"$program" breakdown || status=$?
if [ "$status" = 0 ] || [ "$status" = 3 ]; then
  if [ -e /dev/nvidiactl ]; then "$program" gpu || status=$?; fi
fi
exit "$status"
