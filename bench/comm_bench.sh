#!/usr/bin/env bash
# The MPI backend against MPI's own all-reduce, with 2 and with 4 ranks.
set -euo pipefail
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
status=0
for ranks in 2 4; do
  # One core a rank stays free for the progress of collectives, where there are enough. Passive: threads that wait for the
  # next product would else spin on the core that the collective's thread was put on, in some runs and not in others.
  threads=$((cores / ranks > 1 ? cores / ranks - 1 : 1))
  mpirun --quiet --oversubscribe --bind-to none -x OMP_NUM_THREADS="$threads" -x OMP_WAIT_POLICY=passive -np "$ranks" \
    build/release/bin/comm_bench || status=$?
done
exit "$status"
