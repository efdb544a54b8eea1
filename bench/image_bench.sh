#!/usr/bin/env bash
# Images a second of one core: ours against torchvision + DataLoader, in one run, turn by turn.
# TESSERA_TEST_DATA: a folder that holds tiny-imagenet-subset; without it the pictures are made.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
arguments=("${TESSERA_BUILD:-build/release}/bin/image_bench")
[ -z "${TESSERA_TEST_DATA:-}" ] || arguments+=("$TESSERA_TEST_DATA/tiny-imagenet-subset")
python=$(tools/references/venv.sh)
OMP_NUM_THREADS=1 exec "$python" bench/image_bench.py "${arguments[@]}"
