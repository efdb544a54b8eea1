#!/usr/bin/env bash
# Compares the MPI backend with MPI's own all-reduce, on 2 and 4 ranks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=bench/marks.sh
. bench/marks.sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
for ranks in 2 4; do
  # Leave one core per rank free for the progress of collectives, if there are enough. Passive: otherwise threads that
  # wait for the next matrix product spin, in some runs, on the core of the collective's thread.
  threads=$((cores / ranks > 1 ? cores / ranks - 1 : 1))
  marked mpirun --quiet --oversubscribe --bind-to none -x OMP_NUM_THREADS="$threads" -x OMP_WAIT_POLICY=passive \
    -np "$ranks" "${TESSERA_BUILD:-build/release}/bin/comm_bench"
done
exit "$status"
