#!/usr/bin/env python3
"""Makes tests/data/monitor/psrecord*: logs that the real psrecord writes around a small program with children, and in
psrecord.json what the workshops' rules read out of them (peak, mean and, of rounded MB, mode of the third column).

    pip install psrecord && tools/references/psrecord_log.py
"""
import collections
import importlib.metadata
import json
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/data/monitor"

# Grows by 20 MiB, starts two children of 10 MiB each, one of which ends early.
PROGRAM = """
import subprocess, sys, time
time.sleep(0.5)
block = b"x" * (20 << 20)
child = [sys.executable, "-c", "import sys, time; b = b'x' * (10 << 20); time.sleep(float(sys.argv[1]))"]
children = [subprocess.Popen(child + [seconds]) for seconds in ("0.7", "1.5")]
for each in children:
    each.wait()
"""


def record(name, *options):
    program = FOLDER / "program.py"
    program.write_text(PROGRAM)
    log = FOLDER / name
    command = [sys.executable, "-m", "psrecord", f"{sys.executable} {program}", "--include-children",
               "--interval", "0.15", "--log", str(log), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    program.unlink()
    rows = [line.replace(",", " ").split() for line in log.read_text().splitlines()[1:]]
    column = 3 if "csv" in options else 2
    real = [float(row[column]) for row in rows]
    counts = collections.Counter(f"{value:.0f}" for value in real)
    most = max(counts.values())
    return {"file": name, "samples": len(real), "peak": f"{max(real):.0f}", "average": f"{sum(real) / len(real):.2f}",
            "mode": ", ".join(sorted((value for value, count in counts.items() if count == most), key=int)),
            "last": [float(cell) for cell in (rows[-1][0], *rows[-1][column - 1:column + 2])]}


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    facts = {"psrecord": importlib.metadata.version("psrecord"),
             "logs": [record("psrecord.txt"), record("psrecord_io.txt", "--include-io"),
                      record("psrecord_csv.txt", "--log-format", "csv")]}
    (FOLDER / "psrecord.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
