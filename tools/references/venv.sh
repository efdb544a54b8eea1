#!/usr/bin/env bash
# Creates the Python environment of the reference scripts once, in .deps/references/venv. Prints the path of its python.
# Only for generating references and for benchmarks against the originals: Tessera and its tests do not need it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
venv=.deps/references/venv
if [ ! -f "$venv/complete" ]; then
  python3 -m venv "$venv" >&2
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r tools/references/requirements.txt >&2
  touch "$venv/complete"
fi
echo "$PWD/$venv/bin/python"
