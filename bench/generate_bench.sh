#!/usr/bin/env bash
# Compares generation in evaluation (batched, with a cache) with one prompt at a time without a cache; on a GPU if any.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec env OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" "${TESSERA_BUILD:-build/release}/bin/generate_bench" "$@"
