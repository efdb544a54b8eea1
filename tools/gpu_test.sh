#!/usr/bin/env bash
# `./x gpu-test` after its set-up: build what the GPU tests need, run every GPU test, compute-sanitizer and every GPU
# benchmark, and write all output to one file, build/gpu-test.txt. The exit status is that of the build and the tests. With
# SQUAD and TOKENIZER (bench/gpu_runs.sh) also the benchmarks that train, which take most of an hour; with PICTURES
# (bench/resnet_bench.sh) also training from JPEG files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/provenance.sh
. tools/provenance.sh

results=build/gpu-test.txt

run_all() {
  local started=$SECONDS status=0
  provenance ./x gpu-test
  # Not everything: it takes minutes.
  ./x build cuda tessera gpu_tests || return
  echo "==> Built after $((SECONDS - started)) s"
  # One GPU, so one test at a time: tests must not disturb each other's timings or memory.
  ctest --test-dir build/release -L gpu --no-tests=error --output-on-failure --verbose || status=$?
  tools/sanitize_kernels.sh || status=$?
  build/release/bin/bloom_gpu_bench || status=$?
  # Where there are cores to spare, these show how well collectives and compute overlap. A missed mark is in the file
  # but does not fail the run: speed is measured, not tested.
  local missed=0
  tools/bench.sh comm decoder optimizer engine generate resnet checkpoint trainer strategy scale || missed=$?
  [ "$missed" = 0 ] || [ "$missed" = 3 ] || status=$missed
  echo "==> gpu-test: status $status after $((SECONDS - started)) s"
  return "$status"
}

mkdir -p build
status=0
run_all 2>&1 | tee "$results" || status=$?
echo "==> written: $results"
exit "$status"
