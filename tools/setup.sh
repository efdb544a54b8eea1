# shellcheck shell=bash
# Sourced by ./x: finds or installs packages, then libtorch and pyarrow. `ensure GROUP...` may be called any number of times; it
# installs only what is missing, and where it may not install it says how to get that as a user. Needs ROOT; sets
# TORCH_DIR, PYARROW_DIR, PATH and CMAKE_PREFIX_PATH.

TORCH_MIN_MAJOR=2
TORCH_MIN_MINOR=11
# Installed without dependencies: the CPU flavour needs only two small NVIDIA libraries besides torch, not all 2 GB.
TORCH_PACKAGES=(torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)
DEPS=$ROOT/.deps
CONDA_DIR=$DEPS/conda  # a user's own packages for this clone; need not be activated
# Optional packages are tried only once, so that a machine without a network is not slow every time.
OPTIONAL_TRIED=$DEPS/optional-tried

say() { printf '==> %s\n' "$*"; }
note() { printf '    %s\n' "$*" >&2; }
die() {
  printf 'x: %s\n' "$1" >&2
  exit "${2:-1}"
}

# shellcheck source=tools/setup_arrow.sh
. tools/setup_arrow.sh

# ensure GROUP...: build (and libtorch with it), arrow (pyarrow), slurm, wheel, tarball, deb, fuzz, format, lint. GROUP? is
# optional.
ensure() {
  local started=$SECONDS group required=() optional=()
  DID_SOMETHING=no
  find_prefixes
  for group; do
    case $group in
      build)
        required+=(build)
        optional+=(comfort)
        find_torch || required+=(download)  # all that is missing is then named at once
        ;;
      arrow) find_pyarrow || required+=(download) ;;
      arrow\?) find_pyarrow || optional+=(download) ;;
      slurm | *\?) optional+=("${group%\?}") ;;  # without it its tests are skipped, with the reason
      *) required+=("$group") ;;
    esac
  done
  ensure_packages "${required[*]}" "${optional[*]}"
  case " $* " in *' build '*) [ -n "$TORCH_FOUND" ] || download_torch ;; esac
  case " $* " in
    *' arrow '*) ensure_pyarrow required ;;
    *' arrow? '*) ensure_pyarrow optional ;;
  esac
  if [ "$DID_SOMETHING" = no ]; then
    say "Set-up: nothing to do${TORCH_FOUND:+ (torch $TORCH_FOUND)}"
  else
    say "Set-up: done in $((SECONDS - started)) s${TORCH_FOUND:+ (torch $TORCH_FOUND)}"
  fi
}

# --- packages -------------------------------------------------------------------------------------

# What each group needs: the Debian package, conda-forge's (- for none), and a check that it (or an equivalent) is
# present. Machines may get these in other ways, so the names are only what to install, never what to look for.
needs() {
  case $1 in
    build)
      cat <<'END_OF_LIST'
g++ gxx compiler_version 12
cmake cmake cmake_version 3.25
ninja-build ninja command ninja
openmpi-bin openmpi command mpirun
libopenmpi-dev openmpi mpi_header mpi.h
nlohmann-json3-dev nlohmann_json header nlohmann/json.hpp
libfmt-dev fmt header fmt/core.h
libgtest-dev gtest header gtest/gtest.h
libjpeg-dev libjpeg-turbo header jpeglib.h
libsodium-dev libsodium header sodium.h
libxxhash-dev xxhash header xxhash.h
zlib1g-dev zlib header zlib.h
END_OF_LIST
      ;;
    comfort) # the commit in results, faster rebuilds and links, arbitrary tokenizer expressions, accelerate's files
      printf '%s\n' 'git git command git' 'ccache ccache command ccache' 'mold mold command mold' \
        'libonig-dev oniguruma header oniguruma.h' 'libyaml-cpp-dev yaml-cpp header yaml-cpp/yaml.h'
      ;;
    download) printf '%s\n' 'python3 python command python3' 'python3-pip pip pip python3' ;;
    slurm)
      printf '%s\n' 'slurm-wlm - command slurmctld' 'slurm-wlm - command slurmd' 'slurm-wlm - command srun' \
        'munge - command munged' 'iproute2 - command ip'
      ;;
    wheel) printf '%s\n' 'python3-wheel wheel python_module wheel' 'python3-venv python python_module ensurepip' ;;
    tarball) echo 'pigz pigz command pigz' ;;
    deb) printf '%s\n' 'dpkg - command dpkg-deb' 'dpkg-dev - command dpkg-shlibdeps' ;;
    fuzz) # no libtorch: the fuzzed code does not need it
      needs build
      printf '%s\n' 'clang clangxx command clang++' 'libclang-rt-dev compiler-rt fuzzer_library clang++'
      ;;
    format) echo 'clang-format clang-format command clang-format' ;;
    lint) printf '%s\n' 'shellcheck shellcheck command shellcheck' 'clang-tidy clang-tools command clang-tidy' ;;
  esac
}

# Modules and conda announce what they bring by variables for compilers. CMake reads only CMAKE_PREFIX_PATH, so the
# prefixes behind the others go there, after the user's own. Conda's last: an active environment often holds a few
# libraries by accident, and a machine that has everything must not mix them with its own (see ensure_packages).
find_prefixes() {
  local folder
  if [ -d "$CONDA_DIR/bin" ] && [[ :$PATH: != *":$CONDA_DIR/bin:"* ]]; then
    PATH=$CONDA_DIR/bin:$PATH CONDA_PREFIX=$CONDA_DIR
  fi
  while IFS= read -r folder; do
    folder=$(sed -E 's#/+$##; s#/(lib|lib64|share)/pkgconfig$##; s#/(include|lib|lib64)$##' <<<"$folder")
    case $folder in '' | /usr | /usr/local) continue ;; esac
    [ ! -d "$folder" ] || add_prefix "$folder"
  done < <(tr ':' '\n' <<<"${CPATH:-}:${CPLUS_INCLUDE_PATH:-}:${LIBRARY_PATH:-}:${PKG_CONFIG_PATH:-}")
  ! compiler_is_condas || add_prefix "$CONDA_PREFIX"
}
add_prefix() {
  [[ ":${CMAKE_PREFIX_PATH:-}:" == *":$1:"* ]] || export CMAKE_PREFIX_PATH="${CMAKE_PREFIX_PATH:+$CMAKE_PREFIX_PATH:}$1"
}
# Conda's compiler does not see /usr/include: with it, everything has to come from conda.
compiler_is_condas() { [ -n "${CONDA_PREFIX:-}" ] && [[ $(command -v g++) == "$CONDA_PREFIX"/* ]]; }

# missing GROUP...: the lines of `needs` that this machine does not satisfy.
missing() {
  local group
  for group; do
    needs "$group"
  done | missing_of
}
# missing_of <LINES: those of the lines that this machine does not satisfy.
missing_of() {
  local package conda kind what
  while read -r package conda kind what; do
    "has_$kind" "$what" || echo "$package $conda $kind $what"
  done
}

has_command() { command -v "$1" >/dev/null; }
has_fuzzer_library() { has_command "$1" && compgen -G "$("$1" -print-runtime-dir)/libclang_rt.fuzzer[-.]*" >/dev/null; }
has_compiler_version() { has_command g++ && is_at_least "$1" "$(g++ -dumpfullversion)"; }  # 12: the oldest one tried
has_cmake_version() { has_command cmake && is_at_least "$1" "$(cmake --version | sed -n 's/^cmake version //p')"; }
is_at_least() { printf '%s\n' "$1" "$2" | sort -VC; }
has_python_module() { [ -n "$(python_with "$1")" ]; }
# pip itself, or what makes a virtual environment that has it.
has_pip() { [ -n "$(python_with pip)" ] || [ -n "$(python_with ensurepip)" ]; }
# python_with MODULE: the user's python3 or the system's, whichever has it; apt installs for the latter.
python_with() {
  local python
  for python in python3 /usr/bin/python3; do
    if has_command "$python" && (cd / && "$python" -c "import importlib.util as u, sys; sys.exit(not u.find_spec('$1'))"); then
      echo "$python"
      return
    fi
  done
}
# Conda's mpicc asks for conda's compiler; CMake does not.
has_mpi_header() { has_command mpicc && { can_include mpicc "$1" || can_include g++ "$1"; }; }
has_header() {
  # The usual place first: asking the compiler takes 10 ms per header.
  { [ -f "/usr/include/$1" ] && ! compiler_is_condas; } || can_include g++ "$1"
}
# can_include COMPILER HEADER: also searches CMAKE_PREFIX_PATH, as CMake does.
can_include() {
  local prefix flags=()
  has_command "$1" || return
  for prefix in $(tr ':;' '  ' <<<"${CMAKE_PREFIX_PATH:-}"); do flags+=("-I$prefix/include"); done
  printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$2" | "$1" "${flags[@]}" -x c++ -E -o /dev/null - 2>/dev/null
}

# ensure_packages "REQUIRED GROUPS" "OPTIONAL GROUPS"
ensure_packages() {
  local required optional
  # shellcheck disable=SC2086 # lists of words
  required=$(missing $1)
  if [ -n "$required" ] && [ -n "${CONDA_PREFIX:-}" ]; then
    add_prefix "$CONDA_PREFIX"
    required=$(missing_of <<<"$required")
  fi
  # shellcheck disable=SC2086
  optional=$(missing $2)
  [ -z "$required" ] || install_required "$required" "$1"
  [ -z "$optional" ] || install_optional "$optional"
}

# install_required LINES "GROUPS"
install_required() {
  local packages left
  packages=$(package_names "$1")
  has_command apt-get || die "this is not Debian or Ubuntu: ./x cannot install packages. Missing:
$(describe "$1")
$(as_a_user "$1" "$2")"
  may_be_root ask || die "you may not install packages here (neither root nor sudo). Missing:
$(describe "$1")
$(as_a_user "$1" "$2")
With an administrator: apt-get install --no-install-recommends $packages"
  # shellcheck disable=SC2086 # a list of words
  apt_install $packages || die "apt-get could not install: $packages"
  left=$(missing_of <<<"$1")
  [ -z "$left" ] || die "still missing after apt-get install:
$(describe "$left")"
}

# as_a_user LINES "GROUPS": how to get what is missing without an administrator.
as_a_user() {
  local lines=$1 group tool packages modules
  # Conda's compiler sees conda's libraries only: then all of these, not only what the system lacks.
  [[ $lines != *' compiler_version '* ]] ||
    lines+=$'\n'$(for group in $2; do needs "$group"; done | grep 'header ')
  packages=$(conda_names "$lines")
  modules=$(conda_names "$1")
  echo "Without an administrator:"
  [ -z "${MODULEPATH:-}" ] || [ -z "$modules" ] ||
    echo "  modules  module avail ${modules/gxx/gcc}   # load what fits and run ./x again"
  if [ -n "$packages" ]; then
    for tool in conda mamba micromamba; do ! has_command "$tool" || break; done
    echo "  conda    $tool $([ -d "$CONDA_DIR" ] && echo install || echo create) -y -p '$CONDA_DIR' -c conda-forge $packages"
    echo "           ./x then finds it there.$(has_command "$tool" || echo " micromamba is a single file: mamba.readthedocs.io")"
  fi
  echo "  else     name the places of what you have: CMAKE_PREFIX_PATH for libraries, PATH for programs, TORCH_DIR for torch"
  [[ " $2 " != *' build '* ]] || echo "  or       install the finished program, which needs no compiler: docs/install.md"
}

# Nothing fails without these: a note is enough, and only once.
install_optional() {
  local package packages=()
  for package in $(package_names "$1"); do
    grep -qsx "$package" "$OPTIONAL_TRIED" || packages+=("$package")
  done
  [ ${#packages[@]} -gt 0 ] || return 0
  mkdir -p "$DEPS"
  printf '%s\n' "${packages[@]}" >>"$OPTIONAL_TRIED"
  if ! has_command apt-get || ! may_be_root quietly || ! apt_install "${packages[@]}"; then
    note "continuing without the optional ${packages[*]} (not tried again; remove .deps/optional-tried to retry)"
  fi
}

package_names() { cut -d' ' -f1 <<<"$1" | sort -u | xargs; }
conda_names() { cut -d' ' -f2 <<<"$1" | sed '/^-$/d' | sort -u | xargs; }
describe() {
  sed -E 's/^(\S+) (\S+) (\S+) (\S+)$/  \3 \4 (Debian and Ubuntu: \1; conda-forge: \2)/; s/; conda-forge: -\)/)/
    s/^  compiler_version (\S+)/  g++ \1 or newer/; s/^  cmake_version (\S+)/  cmake \1 or newer/; s/^  command/  program/
    s/^  mpi_header/  header/; s/^  python_module/  Python module/; s/^  fuzzer_library/  libFuzzer for/
    s/^  pip python3/  pip or ensurepip for python3/' <<<"$1"
}

# may_be_root ask|quietly: asks for a password only for required packages.
may_be_root() {
  [ "$(id -u)" = 0 ] && return
  has_command sudo || return
  if [ "$1" = ask ] && [ -t 0 ]; then return; fi
  sudo -n true 2>/dev/null
}
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# apt_install PACKAGE...: prints what and how much, then its progress. The full output is in .deps/apt.log.
apt_install() {
  local log=$DEPS/apt.log plan
  local options=(-q -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 -o Dpkg::Use-Pty=0)
  mkdir -p "$DEPS"
  DID_SOMETHING=yes
  say "Packages to install: $*"
  if [ "${APT_UPDATED:-no}" = no ]; then
    as_root apt-get "${options[@]}" update >"$log" 2>&1 || note "apt-get update failed: $(grep -m1 '^[EW]:' "$log")"
    APT_UPDATED=yes
  fi
  if ! plan=$(LC_ALL=C apt-get install --assume-no --no-install-recommends "$@" 2>&1) && ! grep -q '^Need to get' <<<"$plan"; then
    grep '^E:' <<<"$plan" | sed 's/^/    /' >&2
    return 1
  fi
  note "$(grep -E 'newly installed' <<<"$plan")"
  note "$(grep -E '^(Need to get|After this operation)' <<<"$plan" | xargs)"
  as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get "${options[@]}" install -y --no-install-recommends "$@" 2>&1 |
    tee "$log" | apt_progress "$(sed -nE 's/.* ([0-9]+) newly installed.*/\1/p' <<<"$plan")" || {
    tail -5 "$log" >&2
    return 1
  }
}

# Each package is fetched, unpacked and set up. Prints a line for every tenth of a long installation.
apt_progress() {
  ((${1:-0} >= 20)) || {
    cat >/dev/null
    return
  }
  local steps=$((3 * $1)) done=0 shown=0 word doing
  while read -r word _; do
    case $word in
      Get:*) doing=fetching ;;
      Unpacking) doing=unpacking ;;
      Setting) doing='setting up' ;;
      *) continue ;;
    esac
    done=$((done + 1))
    if ((done * 10 / steps > shown)); then
      shown=$((done * 10 / steps))
      note "$((shown * 10)) % ($doing)"
    fi
  done
}

# --- libtorch -------------------------------------------------------------------------------------

# find_torch: TORCH_DIR if set, else the active Python's torch, else the one in .deps. Sets TORCH_DIR (the folder with
# include/ and lib/) and TORCH_FOUND (version and location, for messages), or returns 1: it has to be downloaded.
find_torch() {
  local found problem
  TORCH_FOUND=
  if [ -n "${TORCH_DIR:-}" ]; then
    problem=$(torch_problem "$TORCH_DIR")
    [ -z "$problem" ] || die "TORCH_DIR=$TORCH_DIR cannot be used: $problem"
  elif found=$(python_package torch) && [ -n "$found" ] && problem=$(torch_problem "$found") && [ -z "$problem" ]; then
    TORCH_DIR=$found
  else
    [ -z "$found" ] || note "not using the active Python's torch in $found: $problem"
    [ -z "$(torch_problem "$DEPS/torch/torch")" ] || return
    TORCH_DIR=$DEPS/torch/torch
  fi
  TORCH_DIR=$(cd "$TORCH_DIR" && pwd)
  TORCH_FOUND="$(torch_version "$TORCH_DIR") in ${TORCH_DIR#"$ROOT/"}"
}

# python_package NAME: where the active Python would find it, without importing it (takes seconds) and ignoring the current
# folder; empty if it has none.
python_package() {
  has_command python3 || return 0
  (cd / && python3 -c '
import importlib.util, os, sys
spec = importlib.util.find_spec(sys.argv[1])
print(os.path.dirname(spec.origin) if spec and spec.origin else "")' "$1") 2>/dev/null || true
}

torch_version() {
  local define name value major='' minor='' patch=''
  while read -r define name value; do
    case "$define $name" in
      '#define TORCH_VERSION_MAJOR') major=$value ;;
      '#define TORCH_VERSION_MINOR') minor=$value ;;
      '#define TORCH_VERSION_PATCH') patch=$value ;;
    esac
  done <"$1/include/torch/headeronly/version.h"
  echo "$major.$minor.$patch"
}

# torch_problem FOLDER: why this torch cannot be used; empty if it can.
torch_problem() {
  local version major minor least=$TORCH_MIN_MAJOR.$TORCH_MIN_MINOR
  if [ ! -f "$1/lib/libtorch_cpu.so" ]; then
    echo "lib/libtorch_cpu.so is missing (expected: the folder 'torch' of site-packages, $least or newer)"
  elif [ ! -f "$1/include/torch/headeronly/version.h" ]; then
    echo "include/torch/headeronly/version.h is missing: it has no headers, or is older than $least"
  else
    version=$(torch_version "$1")
    IFS=. read -r major minor _ <<<"$version"
    ((major > TORCH_MIN_MAJOR || (major == TORCH_MIN_MAJOR && minor >= TORCH_MIN_MINOR))) ||
      echo "it is torch $version, and $least or newer is needed"
  fi
}

download_torch() {
  local free_mib problem
  lock_downloads libtorch
  TORCH_DIR=$DEPS/torch/torch
  if [ -n "$(torch_problem "$TORCH_DIR")" ]; then
    DID_SOMETHING=yes
    rm -rf "$DEPS/torch"
    free_mib=$(df -Pm "$DEPS" | awk 'NR == 2 {print $4}')
    ((free_mib > 2500)) || die "unpacking libtorch needs 2.5 GB of free space in $DEPS; there are $free_mib MB"
    say "Downloading libtorch into .deps/torch ($([ "$(uname -m)" = x86_64 ] && echo 545 || echo 435) MB): ${TORCH_PACKAGES[*]}"
    pip_into torch "${TORCH_PACKAGES[@]}" ||
      die "pip could not download libtorch: see the message above. To use an existing torch: TORCH_DIR=<folder> ./x ..."
    problem=$(torch_problem "$TORCH_DIR")
    [ -z "$problem" ] || die "the torch that pip downloaded cannot be used: $problem"
  fi
  exec 9>&-
  find_torch
}

# lock_downloads WHAT: until descriptor 9 is closed.
lock_downloads() {
  mkdir -p "$DEPS"
  exec 9>"$DEPS/lock"
  flock -n 9 || {
    note "another ./x is downloading: waiting for it before $1"
    flock 9
  }
}

# pip_into NAME PACKAGE...: into .deps/NAME, by way of a temporary folder that is renamed when complete, so an interrupted
# download is never used. Returns 1 where pip fails.
pip_into() {
  local partial=$DEPS/$1.partial python watcher status=0
  python=$(python_with pip)
  if [ -z "$python" ]; then  # only ensurepip: a virtual environment has pip
    python=$DEPS/venv/bin/python3
    "$(python_with ensurepip)" -m venv "$DEPS/venv" || die "python3 could not make a virtual environment in .deps/venv: see above"
  fi
  # pip unpacks in TMPDIR: next to the target, since /tmp may be small and a rename is then free.
  rm -rf "$partial"
  mkdir -p "$partial/tmp"
  show_growth "$partial" &
  watcher=$!
  # The C++ libraries inside do not depend on Python, so the wheel for one version serves any. No cache: pip would hold
  # the whole file in memory to write it there.
  TMPDIR=$partial/tmp PIP_ROOT_USER_ACTION=ignore "$python" -m pip install --disable-pip-version-check --no-input --no-cache-dir --no-compile \
    --no-deps --only-binary=:all: --python-version 3.11 --target "$partial/done" "${@:2}" || status=1
  kill "$watcher" 2>/dev/null || true
  if [ "$status" = 0 ]; then rm -rf "${DEPS:?}/$1" && mv "$partial/done" "$DEPS/$1"; fi
  rm -rf "$partial"
  return "$status"
}

# pip shows its progress bar only on terminals; elsewhere print the progress every few seconds. Ends with its parent.
show_growth() {
  exec 9>&-
  [ ! -t 1 ] || return 0
  while sleep 5 && kill -0 $$ 2>/dev/null; do
    [ -d "$1" ] || return 0
    note "$(du -sm "$1" 2>/dev/null | cut -f1) MB on disk so far"
  done
}
