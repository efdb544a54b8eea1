#!/usr/bin/env bash
# Loads a model folder of BLOOM-560M's size; compared in one run with read() of the file and safetensors' own loader.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
program=${TESSERA_BUILD:-build/release}/bin/folder_bench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=$(tools/references/venv.sh)
"$program" write "$work/bloom"
"$python" bench/folder_bench.py "$work/bloom/model.safetensors"
"$program" "$work/bloom"
