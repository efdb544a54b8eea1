#!/usr/bin/env bash
# Compares the fused CPU AdamW with a plain copy, with one thread and with all.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
program=${TESSERA_BUILD:-build/release}/bin/optimizer_bench
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
status=0
for threads in 1 "$cores"; do
  one=0
  OMP_NUM_THREADS=$threads "$program" || one=$?
  [ "$one" = 0 ] || [ "$one" = 3 ] || exit "$one"
  [ "$one" = 0 ] || status=3
done
exit "$status"
