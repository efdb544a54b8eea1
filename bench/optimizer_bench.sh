#!/usr/bin/env bash
# Compares the fused CPU AdamW with a plain copy, with one thread and with all.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=bench/marks.sh
. bench/marks.sh
program=${TESSERA_BUILD:-build/release}/bin/optimizer_bench
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
for threads in 1 "$cores"; do
  OMP_NUM_THREADS=$threads marked "$program"
done
exit "$status"
