#!/usr/bin/env bash
# Makes the wheel, unpacks it as pip does into a virtual environment with a link to the torch it was built with, and
# runs it there without any variable of the caller. Then what users meet: a torch that does not fit, other libraries
# and other MPIs in the way. Each of these works or ends with one clear message.
#
# usage: wheel.sh BUILD_DIR SOURCE_DIR WORK_DIR TORCH_DIR CXX
set -euo pipefail
build=$1 source=$2 work=$3 torch=$(realpath "$4") cxx=$5

failures=0
fail() {
  echo "FAILED: $1"
  [ ! -s "$work/log" ] || head -8 "$work/log" | sed 's/^/    /'
  failures=$((failures + 1))
}
die() {
  fail "$1"
  exit 1
}

rm -rf "$work"
mkdir -p "$work/tools" "$work/elsewhere"
work=$(realpath "$work")
if ! python3 -c 'import wheel' 2>/dev/null && ! /usr/bin/python3 -c 'import wheel' 2>/dev/null; then
  echo "SKIPPED: Python's module wheel is missing (Debian and Ubuntu: python3-wheel)"
  exit 77
fi
"$source/tools/package.sh" --build "$build" --to "$work" wheel >"$work/log" 2>&1 || die "tools/package.sh wheel"
wheel=$(echo "$work"/*.whl)

# --- a virtual environment; torch is linked in before each case ---------------------------------------
venv=$work/venv
python3 -m venv --without-pip "$venv"
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
"$venv/bin/python" - "$wheel" "$venv" "$site" <<'END_OF_PYTHON'
import os, sys, zipfile
wheel, venv, site = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    for entry in archive.infolist():
        first, _, rest = entry.filename.partition("/")
        kind, _, inner = rest.partition("/")
        if first.endswith(".data"):
            path = os.path.join(venv, "bin" if kind == "scripts" else "", inner)
        else:
            path = os.path.join(site, entry.filename)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(archive.read(entry))
        os.chmod(path, entry.external_attr >> 16 & 0o777)
END_OF_PYTHON
[ -z "$(find "$site/tessera_train" -type l)" ] || die "a wheel cannot hold links"

# put_torch VERSION [LEFT OUT]: a torch package that says it is VERSION, without the libraries of this pattern.
put_torch() {
  local file
  rm -rf "$site/torch"
  mkdir -p "$site/torch/lib"
  ln -s "$torch"/* "$site/torch/" 2>/dev/null || true  # lib exists
  for file in "$torch"/lib/*; do
    # shellcheck disable=SC2053 # a pattern
    [[ $(basename "$file") == ${2:-} ]] || ln -s "$file" "$site/torch/lib/"
  done
  rm "$site/torch/version.py"
  sed "s/^__version__ = .*/__version__ = '$1'/" "$torch/version.py" >"$site/torch/version.py"
}
version=$(sed -n "s/^__version__ = '\([0-9.]*\).*/\1/p" "$torch/version.py")
for folder in "$torch"/../{torch.libs,nvidia}; do
  [ ! -d "$folder" ] || ln -s "$(realpath "$folder")" "$site/$(basename "$folder")"
done

# A PATH with a shell, but without any MPI.
ln -s "$(command -v bash)" "$work/tools/"
variables=(HOME="$work" OMP_NUM_THREADS=1)
[ "$(id -u)" != 0 ] || variables+=(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
# run [NAME=VALUE...] -- ARGUMENTS: the installed program, from another folder. PATH: the environment and a shell.
run() {
  local own=()
  while [ "$1" != -- ]; do own+=("$1") && shift; done
  (cd "$work/elsewhere" && env -i "${variables[@]}" PATH="$venv/bin:$work/tools" "${own[@]}" "$venv/bin/tessera" "${@:2}") >"$work/log" 2>&1
}
demo=$site/tessera_train/share/tessera/demo
train=(train bloom-qa --device cpu --config_name "$demo/bloom.json" --tokenizer_name "$demo/tokenizer"
  --train_file "$demo/train-v1.1.json" --max_length 64 --max_steps 2 --save_strategy no --output_dir out --overwrite_output_dir
  --disable_tqdm)
two_ranks=(launch --nproc_per_node 2 "${train[@]}")

# works NAME [NAME=VALUE...] -- ARGUMENTS
works() {
  if run "${@:2}"; then echo "works: $1"; else fail "$1: status $?"; fi
}
# is_clear WORD...: what the program printed is short, names each word, and is not the loader's.
is_clear() {
  local word
  [ "$(wc -l <"$work/log")" -le 4 ] || return
  ! grep -qE 'symbol lookup|undefined symbol|error while loading|terminate called|Segmentation' "$work/log" || return
  for word; do grep -qF -- "$word" "$work/log" || return; done
}
# refused NAME "WORD..." [NAME=VALUE...] -- ARGUMENTS
refused() {
  # shellcheck disable=SC2086 # a list of words
  if run "${@:3}"; then
    fail "$1: accepted, but should have been refused"
  elif is_clear $2; then
    echo "refused: $1: $(tail -1 "$work/log")"
  else
    fail "$1: not one clear message that names: $2"
  fi
}

# --- torch ------------------------------------------------------------------------------------------
put_torch "$version"
works "tessera --version" -- --version
grep -q "$version" "$work/log" || fail "tessera --version does not name torch $version"
works "a run of two steps without an activated environment" PATH="$work/tools" -- "${train[@]}"
put_torch "$version+cpu" '*_cuda*'
works "a CPU-only torch" -- "${train[@]}"
! grep -i cuda "$work/log" || fail "a run with a CPU-only torch complains about CUDA"
works "tessera env with a CPU-only torch" -- env
put_torch 2.9.1
refused "a torch that is too old" "torch 2.9.1 ${version%.*} pip" -- --version
put_torch 2.99.0+cu150
refused "a torch that is too new" "torch 2.99.0 ${version%.*} pip" -- "${train[@]}"
rm -rf "$site/torch"
refused "no torch" "torch ${version%.*} pip" -- --version
dirname "$torch" >"$site/other.pth"  # as with --system-site-packages
works "a torch elsewhere, that the environment's Python finds" -- "${train[@]}"
rm "$site/other.pth"
put_torch "$version"

# --- foreign libraries: empty ones, so that taking them fails ------------------------------------------
stubs() {
  local name folder=$1
  mkdir -p "$folder"
  for name in "${@:2}"; do "$cxx" -shared -nostdlib -o "$folder/$name" -Wl,-soname,"$name" -x c /dev/null; done
}
stubs "$work/conda" libfmt.so.{9,10,11} libz.so.1 libjpeg.so.{8,62} libonig.so.5 libxxhash.so.0 libyaml-cpp.so.0.{7,8} libsodium.so.23 libgomp.so.1 libmpi.so.40
works "small libraries of conda first" LD_LIBRARY_PATH="$work/conda" -- "${train[@]}"
stubs "$work/other_torch" libtorch_cpu.so libc10.so libtorch.so
works "another torch's libraries first" LD_LIBRARY_PATH="$work/other_torch" -- "${train[@]}"
stubs "$work/old" libstdc++.so.6 libgcc_s.so.1
refused "an old libstdc++ first" LD_LIBRARY_PATH LD_LIBRARY_PATH="$work/old" -- "${train[@]}"

# --- MPI ----------------------------------------------------------------------------------------------
refused "no mpirun" "MPI" -- "${two_ranks[@]}"
mkdir -p "$work/mpich"
printf '#!/bin/sh\necho "this is not the mpirun you want"\nexit 9\n' >"$work/mpich/mpiexec.hydra"
chmod +x "$work/mpich/mpiexec.hydra"
ln -s mpiexec.hydra "$work/mpich/mpirun"
ln -s mpiexec.hydra "$work/mpich/mpiexec"
stubs "$work/mpich/lib" libmpi.so.12
refused "MPICH alone" "$work/mpich/mpirun MPI" PATH="$venv/bin:$work/mpich:$work/tools" LD_LIBRARY_PATH="$work/mpich/lib" -- "${two_ranks[@]}"
works "one rank beside MPICH" PATH="$venv/bin:$work/mpich:$work/tools" LD_LIBRARY_PATH="$work/mpich/lib" -- "${train[@]}"
if command -v mpirun >/dev/null; then
  works "MPICH before Open MPI" PATH="$venv/bin:$work/mpich:/usr/local/bin:/usr/bin:/bin" -- "${two_ranks[@]}"
fi

# --- the CMake package --------------------------------------------------------------------------------
mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<'END_OF_FILE'
cmake_minimum_required(VERSION 3.25)
project(one LANGUAGES CXX)
find_package(tessera REQUIRED)
message(STATUS "torch: ${tessera_TORCH_DIR}")
add_executable(one one.cc)
target_link_libraries(one PRIVATE tessera::tessera)
END_OF_FILE
cat >"$work/project/one.cc" <<'END_OF_FILE'
#include <tessera/spread.h>
int main() { return tessera::strategy_names().empty(); }
END_OF_FILE
if ! { cmake -G Ninja -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$site/tessera_train" -DCMAKE_CXX_COMPILER="$cxx" &&
  cmake --build "$work/project/build"; } >"$work/log" 2>&1; then die "a project does not find the wheel's CMake package"; fi
grep -q "torch: $site/torch" "$work/log" || die "the CMake package does not take the torch beside it"
"$work/project/build/one" >"$work/log" 2>&1 || die "a program linked with the wheel's library ends with status $?"
echo "works: a project by the wheel's CMake package"
[ $failures = 0 ] || exit 1
rm -rf "$work"
echo "passed"
