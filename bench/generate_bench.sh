#!/usr/bin/env bash
# Answers of an evaluation (batched, with a cache) against one prompt at a time without a cache; on a GPU where there is one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec env OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" "${TESSERA_BUILD:-build/release}/bin/generate_bench" "$@"
