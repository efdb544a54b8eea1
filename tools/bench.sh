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
  local result=0
  { provenance "$*" && "$@"; } 2>&1 | tee build/bench.txt || result=$?
  grep -q 'Overlap:' build/bench.txt || return "$result"  # a broken run leaves no result, a missed mark does
  mv build/bench.txt "$file"
  echo "==> written: $file"
  ((result == 0)) || missed=$((missed + 1))
}
missed=0

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
for ranks in 2 4; do
  # One core a rank stays free for the progress of collectives, where there are enough.
  threads=$((cores / ranks > 1 ? cores / ranks - 1 : 1))
  record "comm_bench_${ranks}ranks" \
    mpirun --oversubscribe --bind-to none -x OMP_NUM_THREADS="$threads" -np "$ranks" "$bin/comm_bench"
done
((missed == 0)) || { echo "==> $missed of the runs missed a mark"; exit 1; }
