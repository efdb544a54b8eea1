#!/usr/bin/env python3
"""Where a GPU's time goes: the kernels of traces that `tessera train --profile_steps` writes, by kind.

usage: kernel_table.py NAME=TRACE.json.gz:STEPS... prints milliseconds and launches a step, one column for each trace.
"""
import gzip
import json
import re
import sys
from collections import defaultdict

# The first that matches names the kind.
KINDS = [
    ("matrix products", r"nvjet|cutlass|gemm|splitKreduce"),
    ("attention", r"CudaAttention|flash|fmha|WidenHeads"),
    ("batch norm", r"CudaBatchNorm|batch_norm|bn_fw|bn_bw"),
    ("convolutions", r"cudnn|implicit|wgrad|dgrad|xmma"),
    ("max pooling", r"CudaMaxPool|max_pool"),
    ("layer norm", r"CudaNormBackward|::forward<[^>]*>\(\S+ const\*, \S+ const\*, \S+ const\*, \S+ const\*, float"),
    ("GELU", r"tessera.*::(forward|backward)<"),
    ("sums for biases and norms", r"add_row_blocks|add_up"),
    ("the head's loss", r"rows_in_clusters|rows_of_logits|add_losses"),
    ("optimizer", r"update_packs|update_numbers"),
    ("norm of the gradient", r"square_sums|add_unit|add_in_order"),
    ("embedding", r"tessera.*::add<|radixSort|vectorized_gather"),
    ("copies and fills", r"Memcpy|Memset|FillFunctor|::put<|copy"),
]


def kind_of(name):
    return next((kind for kind, pattern in KINDS if re.search(pattern, name)), "other")


def read(trace, num_steps):
    """{kind: [ms, launches]} a step, and the ms from the first kernel's begin to the last one's end."""
    opened = gzip.open(trace, "rt") if trace.endswith(".gz") else open(trace)
    with opened as file:
        events = json.load(file)["traceEvents"]
    events = [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    if not events:
        sys.exit(f"{trace}: no kernels in it; was it written on a GPU?")
    sums = defaultdict(lambda: [0.0, 0.0])
    for event in events:
        of_kind = sums[kind_of(event["name"])]
        of_kind[0] += event["dur"] / 1000 / num_steps
        of_kind[1] += 1 / num_steps
    begin = min(event["ts"] for event in events)
    end = max(event["ts"] + event["dur"] for event in events)
    return sums, (end - begin) / 1000 / num_steps


def main(arguments):
    columns = {}
    for argument in arguments:
        match = re.fullmatch(r"([^=]+)=(.+):(\d+)", argument)
        if not match or int(match[3]) == 0:
            sys.exit(f"{__doc__}\n'{argument}' is not NAME=TRACE:STEPS")
        columns[match[1]] = read(match[2], int(match[3]))
    if not columns:
        sys.exit(__doc__)
    print(f"{'ms (launches) a step':28}" + "".join(f"{name:>22}" for name in columns))
    largest = {kind: max(sums[kind][0] for sums, _ in columns.values()) for kind in [k for k, _ in KINDS] + ["other"]}
    for kind in sorted(largest, key=largest.get, reverse=True):
        if largest[kind] > 0:
            cells = (f"{sums[kind][0]:.2f} ({sums[kind][1]:.0f})" for sums, _ in columns.values())
            print(f"{kind:28}" + "".join(f"{cell:>22}" for cell in cells))
    totals = (f"{sum(v[0] for v in s.values()):.2f} ({sum(v[1] for v in s.values()):.0f})" for s, _ in columns.values())
    print(f"{'all':28}" + "".join(f"{cell:>22}" for cell in totals))
    print(f"{'from first to last':28}" + "".join(f"{span:>22.2f}" for _, span in columns.values()))


if __name__ == "__main__":
    main(sys.argv[1:])
