#!/usr/bin/env bash
# tools/bench.sh [NAME...]: run bench/NAME_bench.sh for each name, by default all. The output goes to the screen and,
# with its provenance, to bench/results/. A benchmark exits with 0, with 3 if it misses a mark (the result is still
# kept), with 77 if it cannot run here, or with another status if it is broken (nothing is kept).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/provenance.sh
. tools/provenance.sh

names=("$@")
if [ ${#names[@]} = 0 ]; then
  for script in bench/*_bench.sh; do names+=("$(basename "$script" _bench.sh)"); done
fi
mkdir -p build bench/results
missed=() broken=()
for name in "${names[@]}"; do
  script=bench/${name}_bench.sh
  [ -x "$script" ] || { echo "bench: there is no $script" >&2; exit 2; }
  printf '\n==> %s\n' "$script"
  status=0
  { provenance "$script" && "$script"; } 2>&1 | tee build/bench.txt || status=$?
  [ "$status" != 77 ] || continue
  if [ "$status" != 0 ] && [ "$status" != 3 ]; then
    broken+=("$name")
    continue
  fi
  file=bench/results/${name}_bench_$(machine_name)_$(date -u +%Y-%m-%d).txt
  mv build/bench.txt "$file"
  echo "==> written: $file"
  [ "$status" = 0 ] || missed+=("$name")
done
[ ${#broken[@]} = 0 ] || { echo "==> broken: ${broken[*]}"; exit 1; }
[ ${#missed[@]} = 0 ] || { echo "==> missed a mark: ${missed[*]}"; exit 3; }
