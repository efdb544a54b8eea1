#!/usr/bin/env python3
"""Opens a folder of trace_rank-N.json.gz files (--profile_steps) with Holistic Trace Analysis.

    pip install HolisticTraceAnalysis
    tools/references/analyse_trace.py FOLDER [NUM_STEPS]

Prints how much of the GPU's time was computation, communication, copies and idle, and fails if the analysis finds no
kernel, no unit of the model or not the given number of steps. The folder must hold nothing but traces.
"""
import gzip
import json
import sys
from pathlib import Path

from hta.trace_analysis import TraceAnalysis


def main() -> None:
    folder = Path(sys.argv[1])
    analysis = TraceAnalysis(trace_dir=str(folder))
    breakdown = analysis.get_temporal_breakdown(visualize=False)
    print(breakdown.to_string())
    kinds, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=5)
    print(kinds.to_string())
    kernels["name"] = kernels["name"].str.slice(0, 60)
    print(kernels[["name", "sum (us)", "kernel_type"]].head(8).to_string())
    if not (breakdown["compute_time(us)"] > 0).all():
        sys.exit("no computation on the GPU was found")
    for path in sorted(folder.glob("*.json.gz")):
        names = [event.get("name", "") for event in json.load(gzip.open(path))["traceEvents"]]
        steps = [name for name in names if name.startswith("ProfilerStep#")]
        units = {name for name in names if name.startswith("transformer.h.")}
        print(f"{path.name}: {len(names)} events, {len(steps)} steps, {len(units)} units")
        if not units or (len(sys.argv) > 2 and len(steps) != int(sys.argv[2])):
            sys.exit(f"{path}: expected units of the model and {sys.argv[2:]} steps")


main()
