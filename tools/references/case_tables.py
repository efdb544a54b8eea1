"""Writes src/data/templates/case_tables.inc: upper, lower and title case of characters as Python knows them.

    python3 tools/references/case_tables.py

Most characters differ from their other case by a number that whole runs share: first, last, step between characters,
difference. The rest becomes several characters: code, count, codes.
"""

import pathlib
import sys
import unicodedata

OUT = pathlib.Path(__file__).parents[2] / "src/data/templates/case_tables.inc"


def runs_of(change):
    """[first, last, step, difference] of all characters that become one other character."""
    pairs = [(code, ord(change(chr(code))) - code) for code in range(0x110000)
             if not 0xD800 <= code < 0xE000 and change(chr(code)) != chr(code) and len(change(chr(code))) == 1]
    runs = []
    for code, difference in pairs:
        if runs and runs[-1][3] == difference:
            first, last, step, _ = runs[-1]
            if (first == last and code - last <= 2) or (first != last and code - last == step):
                runs[-1][1:3] = [code, code - last]
                continue
        runs.append([code, code, 1, difference])
    return [number for run in runs for number in run]


def several(change):
    flat = []
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000 or len(change(chr(code))) == 1:
            continue
        changed = [ord(c) for c in change(chr(code))]
        flat += [code, len(changed), *changed]
    return flat


def table(name, numbers):
    lines, line = [], ""
    for number in numbers:
        text = f"{number},"
        if len(line) + len(text) > 118:
            lines.append(line)
            line = ""
        line += text
    return f"constexpr std::int32_t {name}[] = {{\n" + "\n".join([*lines, line]) + "\n};\n"


def main():
    text = (f"// Written by tools/references/case_tables.py from Python {sys.version.split()[0]}, Unicode "
            f"{unicodedata.unidata_version}. Do not edit.\n// clang-format off\n"
            "// Runs: first, last, step, difference. Several: code, count, codes.\n")
    for name, change in (("Upper", str.upper), ("Lower", str.lower), ("Title", str.title)):
        text += table(f"k{name}Runs", runs_of(change)) + table(f"k{name}Several", several(change) or [-1, 0])
    OUT.write_text(text)
    print(f"{OUT}: {OUT.stat().st_size} bytes")


main()
