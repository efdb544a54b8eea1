#!/usr/bin/env bash
# wheel_demo.sh WHEEL [TORCH_DIR]: what a new user does. Installs the wheel into a fresh virtual environment and runs
# `tessera demo` there: in an empty folder, without any variable of the caller. Checks what the demo has learnt.
# With TORCH_DIR (the folder `torch` of a site-packages) that torch is linked into the environment, as pip would lay it
# there, and nothing is downloaded; without, pip fetches torch with all that it needs.
set -euo pipefail
die() {
  echo "FAILED: $1"
  exit 1
}
wheel=$(realpath "${1:?usage: wheel_demo.sh WHEEL [TORCH_DIR]}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=$work/venv

python3 -m venv "$venv" || die "python3 cannot make a virtual environment (Debian and Ubuntu: python3-venv)"
started=$SECONDS
if [ -n "${2:-}" ]; then
  site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
  for folder in "$2" "$2"/../{torch.libs,nvidia}; do
    [ ! -d "$folder" ] || ln -s "$(realpath "$folder")" "$site/$(basename "$folder")"
  done
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-index --no-deps "$wheel"
else
  "$venv/bin/pip" install --quiet --disable-pip-version-check "$wheel"
fi
echo "installed in $((SECONDS - started)) s: $(du -smL "$venv" | cut -f1) MB, of which Tessera $(du -sm "$venv"/lib/python3*/site-packages/tessera_train | cut -f1) MB"

mkdir "$work/elsewhere"
cd "$work/elsewhere"
clean=(env -i HOME="$work" PATH="$venv/bin:/usr/local/bin:/usr/bin:/bin")
# Open MPI's mpirun refuses root, which in containers is often the only user.
[ "$(id -u)" != 0 ] || clean+=(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
"${clean[@]}" tessera --version || die "tessera --version"
started=$SECONDS
"${clean[@]}" tessera demo learnt >demo.log 2>&1 || { cat demo.log; die "tessera demo ended with status $?"; }
echo "tessera demo: $((SECONDS - started)) s"
cat learnt/summary.txt
# "F1  0.00 before, 0.99 after, on the 48 questions it was trained on"
awk '$1 == "F1" && $3 == "before," { seen = 1; if ($2 > 0.2 || $4 < 0.9) exit 1 } END { exit !seen }' learnt/summary.txt ||
  die "the demo has not learnt its questions: F1 above 0.9 is expected after it, below 0.2 before"
[ -s learnt/report.html ] || die "the demo left no report.html"
echo "passed"
