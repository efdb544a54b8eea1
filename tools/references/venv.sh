#!/usr/bin/env bash
# The Python environment that the reference scripts run in: .deps/references/venv, made once. Prints its python.
# Only for making references and for benchmarks against the originals: the product and its tests need none of it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
venv=.deps/references/venv
if [ ! -f "$venv/complete" ]; then
  python3 -m venv "$venv" >&2
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r tools/references/requirements.txt >&2
  touch "$venv/complete"
fi
echo "$PWD/$venv/bin/python"
