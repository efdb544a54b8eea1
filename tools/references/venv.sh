#!/usr/bin/env bash
# Creates a Python environment of the reference scripts once, below .deps/references. Prints the path of its python.
# Without an argument: the packages of requirements.txt; with NAME: those of requirements_NAME.txt.
# Only for generating references and for benchmarks against the originals: Tessera and its tests do not need it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
name=${1:+_$1}
requirements=tools/references/requirements$name.txt
[ -f "$requirements" ] || { echo "venv.sh: there is no $requirements" >&2; exit 2; }
venv=.deps/references/venv$name
if [ ! -f "$venv/complete" ]; then
  python3 -m venv "$venv" >&2
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements" >&2
  touch "$venv/complete"
fi
echo "$PWD/$venv/bin/python"
