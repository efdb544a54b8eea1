#!/usr/bin/env bash
# Images per second on one core: Tessera against torchvision + DataLoader, alternating in one run.
# TESSERA_TEST_DATA: a folder with tiny-imagenet-subset; without it the images are generated.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
arguments=("${TESSERA_BUILD:-build/release}/bin/image_bench")
[ -z "${TESSERA_TEST_DATA:-}" ] || arguments+=("$TESSERA_TEST_DATA/tiny-imagenet-subset")
python=$(tools/references/venv.sh)
OMP_NUM_THREADS=1 exec "$python" bench/image_bench.py "${arguments[@]}"
