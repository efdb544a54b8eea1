#!/usr/bin/env bash
# A block of Llama and its kernels beside libtorch's operators: on a CPU with one thread, on a GPU if there is one.
# TURNS=20 by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
OMP_NUM_THREADS=1 exec "${TESSERA_BUILD:-build/release}/bin/decoder_bench" "${TURNS:-20}"
