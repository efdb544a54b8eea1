#!/usr/bin/env bash
# Run the benchmark programs; what they print goes to the screen and, with its provenance, to bench/results/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/provenance.sh
. tools/provenance.sh

bin=build/release/bin
mkdir -p bench/results

# record NAME COMMAND...
record() {
  local name=$1 file
  shift
  file=bench/results/${name}_$(machine_name)_$(date -u +%Y-%m-%d).txt
  printf '\n==> %s\n' "$*"
  { provenance "$*" && "$@"; } 2>&1 | tee build/bench.txt
  mv build/bench.txt "$file"  # only now: a broken run leaves no result
  echo "==> written: $file"
}

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
for ranks in 2 4; do
  threads=$((cores / ranks > 0 ? cores / ranks : 1))
  record "comm_bench_${ranks}ranks" \
    mpirun --oversubscribe --bind-to none -x OMP_NUM_THREADS="$threads" -np "$ranks" "$bin/comm_bench"
done
