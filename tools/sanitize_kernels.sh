#!/usr/bin/env bash
# Runs the GPU kernels' tests under compute-sanitizer: memcheck, racecheck and synccheck, on our own kernels alone. Each
# tool has each test in a process of its own, several at a time, because the waiting is the host's. Prints a line for
# each; exits with 1 if one is not clean. JOBS: how many at a time; SANITIZER_SECONDS: how long one may take.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
program=${TESSERA_BUILD:-build/release}/bin/gpu_test
if ! command -v compute-sanitizer >/dev/null; then
  echo "sanitize_kernels: compute-sanitizer is not installed; it comes with the CUDA toolkit" >&2
  exit 1
fi
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# sanitize TOOL TEST, called by xargs
# shellcheck disable=SC2317
sanitize() {
  local log=$logs/$1.$2 status=0 summary
  timeout "${SANITIZER_SECONDS:-300}" compute-sanitizer --tool "$1" --kernel-name kns=tessera --error-exitcode 9 \
    "$program" --gtest_filter="$2" >"$log" 2>&1 || status=$?
  summary=$(sed -n -E 's/^=+ (ERROR|RACECHECK) SUMMARY: //p' "$log" | tail -1)
  echo "$1 $2: ${summary:-no summary}, status $status"
  if [ "$status" != 0 ]; then
    grep -E '^=========' "$log" | head -40
    return 1
  fi
}
export -f sanitize
export logs program SANITIZER_SECONDS

# tests_without PATTERN
tests_without() {
  "$program" --gtest_list_tests --gtest_filter="KernelsOnGpu.*:AttentionOfAmpere.*:BatchNormOnGpu.*:MaxPoolOnGpu.*-$1" |
    awk '/^[^ ]/ { suite = $1; next } { print suite $1 }'
}
# Left out: what takes minutes with kernels that other tests run too.
slow='*Repeats*:*Long*:*EqualsThePlainOne:*EveryLength*:*ABlock*:*IsAsExactAsItsOperations:*PieceByPiece'
few='KernelsOnGpu.LayerNormEqualsThePlainOne KernelsOnGpu.BiasGeluEqualsThePlainOne'
# racecheck ends with an internal error of its own where cuBLAS computes a product, though it does not check that.
products='*BiasGeluLinear*:*LinearCrossEntropyEquals*'
jobs=
for tool in memcheck racecheck synccheck; do
  left_out=$slow
  [ "$tool" != racecheck ] || left_out+=:$products
  names=$(tests_without "$left_out")
  [ -n "$names" ] || { echo "sanitize_kernels: $program has no such tests" >&2; exit 1; }
  for name in $names $few; do jobs+="$tool $name"$'\n'; done
done
status=0
printf %s "$jobs" | xargs -P "${JOBS:-$(nproc)}" -L 1 bash -c 'sanitize "$@"' sanitize || status=1
exit "$status"
