#!/usr/bin/env bash
# make_demo_runs.sh FOLDER: made-up run records for the page, of every kind that it knows: strategies on 1 to 8 GPUs,
# offload, weak scaling, images, a failed and a killed run, one named like a script, one of format 1.
set -euo pipefail
root=$1

# run PATH JOB STRATEGY RANKS SAMPLES_PER_SECOND PEAK_MB STEPS STATUS [NAME=VALUE ...]
run() {
  mkdir -p "$root/$1"
  awk -v path="$1" -v job="$2" -v strategy="$3" -v ranks="$4" -v speed="$5" -v peak="$6" -v steps="$7" -v status="$8" \
    -v more="${*:9}" -f "$(dirname "${BASH_SOURCE[0]}")/demo_run.awk" > "$root/$1/run.json"
}

run bloom/single bloom-qa single 1 11.4 30210 156 finished
run bloom/full_shard_2 bloom-qa full_shard 2 21.3 19650 156 finished
run bloom/full_shard_4 bloom-qa full_shard 4 40.9 14120 156 finished
run bloom/full_shard_8 bloom-qa full_shard 8 75.2 11380 156 finished slow_rank=3
run bloom/zero2_offload bloom-qa zero2 1 6.8 17020 156 finished offload=1
run bloom/zero2_offload_2 bloom-qa zero2 2 12.9 15230 156 finished offload=1
run bloom/zero3_batch_16 bloom-qa zero3 1 9.9 81200 12 failed
run bloom/killed bloom-qa zero2 2 20.0 22000 61 running
run "bloom/<script>alert(1)<script>" bloom-qa zero1 2 22.5 24630 156 stopped_early 'run_name=</script><script>alert(1)</script>'
run weak/2_gpus gpt-qa full_shard 2 6.10 9800 75 finished experiment=fsdp/custom_model/weak_scaling/2_gpus
run weak/4_gpus gpt-qa full_shard 4 5.80 10110 75 finished experiment=fsdp/custom_model/weak_scaling/4_gpus
run weak/8_gpus gpt-qa full_shard 8 5.31 10640 75 finished experiment=fsdp/custom_model/weak_scaling/8_gpus
run resnet/4_gpus resnet-tinyimagenet replicated 4 2710 16800 147 finished
run old/format_1 bloom-qa single 1 10.8 30180 156 finished format=1
