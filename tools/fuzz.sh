#!/usr/bin/env bash
# fuzz.sh SECONDS [TARGET...]: run the built fuzzers, one per core at a time.
#
# Inputs that reach new code are kept in build/fuzz/corpus/TARGET and reused the next time. Inputs that crash, hang or
# take too much memory go to build/fuzz/found/TARGET, and the command fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=$1
shift
mapfile -t known <build/fuzz/fuzz_targets.txt
targets=("$@")
[ $# -gt 0 ] || targets=("${known[@]}")
for target in "${targets[@]}"; do
  printf '%s\n' "${known[@]}" | grep -qxF "$target" || {
    echo "fuzz: '$target' is not a target; the targets are: ${known[*]}" >&2
    exit 2
  }
done

# fuzz_one TARGET: prints a summary; the fuzzer's full output goes to its log.
fuzz_one() {
  local target=$1 log=build/fuzz/log/$1.txt result=0
  local kept=build/fuzz/corpus/$target found=build/fuzz/found/$target
  mkdir -p "$kept" "$found" build/fuzz/log
  # 512 MB per allocation: none of the formats needs a tenth of that for inputs of this size.
  build/fuzz/bin/"${target}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=512 \
    -print_final_stats=1 -artifact_prefix="$found/" "$kept" "fuzz/corpus/$target" >"$log" 2>&1 || result=$?
  local runs
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  if [ "$result" = 0 ]; then
    echo "fuzz: $target: ${runs:-?} inputs in $seconds s, nothing found"
  else
    echo "fuzz: $target: FOUND something after ${runs:-?} inputs; see $log, which ends with:"
    grep -E '^(==[0-9]+==|SUMMARY|artifact_prefix|.*runtime error|.*terminate called|  what)' "$log" | head -12 |
      sed 's/^/    /'
    echo "fuzz: $target: the inputs are in $found; once fixed, keep them: cp $found/* fuzz/corpus/$target/"
    return 1
  fi
}

failed=0
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
for target in "${targets[@]}"; do
  while (($(jobs -rp | wc -l) >= cores)); do
    wait -n || failed=$((failed + 1))
  done
  fuzz_one "$target" &
done
while [ -n "$(jobs -p)" ]; do
  result=0
  wait -n || result=$?
  [ "$result" != 127 ] || break
  [ "$result" = 0 ] || failed=$((failed + 1))
done
((failed == 0)) || exit 1
