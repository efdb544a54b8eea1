#!/usr/bin/env bash
# package.sh [--cuda] [--build DIR] [--to DIR] wheel|tarball|deb...: what `./x package` runs once everything is built.
# Each package holds what `cmake --install` gives, stripped and free of the build machine's folders:
#   wheel    tessera_train/ for site-packages, and the starter for bin/; libtorch is that of the torch wheel beside it
#   tarball  libtorch in lib/ and its headers too: runs from any folder, without Python
#   deb      what the tarball holds, in /opt/tessera, with links to it
# tarball and deb are for CPUs, a tenth of the size, unless --cuda is given. The same build gives the same bytes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD
# shellcheck source=tools/setup.sh
. tools/setup.sh
umask 022
export LC_ALL=C

SUMMARY='trains models across CPUs, GPUs and Slurm nodes, on libtorch'
MAX_WHEEL_MB=40
# What every system with this glibc has. libcuda comes with the driver.
SYSTEM_LIBRARIES='ld-linux.*|lib(c|m|dl|rt|pthread|util|gcc_s|stdc\+\+|cuda|nvidia-ml)\.so\.[0-9]+'

main() {
  local cuda=no build=build/release out=build/package kinds=() kind
  while [ $# -gt 0 ]; do
    case $1 in
      wheel | tarball | deb) kinds+=("$1") ;;
      --cuda) cuda=yes ;;
      --build) build=$2 && shift ;;
      --to) out=$2 && shift ;;
      *) die "package.sh: '$1' is neither wheel, tarball nor deb, nor one of --cuda, --build DIR, --to DIR" 2 ;;
    esac
    shift
  done
  [ ${#kinds[@]} -gt 0 ] || die "package.sh: give one of wheel, tarball, deb" 2
  [ -f "$build/cmake_install.cmake" ] || die "package.sh: there is no build in $build: run ./x package"
  mkdir -p "$out"
  out=$(realpath "$out") build=$(realpath "$build")
  TORCH_DIR=$(sed -n 's/^TORCH_DIR:PATH=//p' "$build/CMakeCache.txt")
  [ -n "$TORCH_DIR" ] || TORCH_DIR=$DEPS/torch/torch
  VERSION=$(sed -n 's/.*kVersion = "\(.*\)".*/\1/p' src/core/version.h)
  # Every time in a package is the commit's. Without git history: the earliest that a zip file can hold.
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}
  export SOURCE_DATE_EPOCH
  WORK=$(mktemp -d "$out/work.XXXXXX")
  trap 'rm -rf "$WORK"' EXIT
  for kind in "${kinds[@]}"; do "make_$kind"; done
}

# --- the three kinds --------------------------------------------------------------------------------

make_wheel() {
  local name=tessera_train-$VERSION python glibc file bytes
  local stage=$WORK/$name
  python=$(python_with wheel)
  [ -n "$python" ] || die "the wheel needs Python's module wheel (Debian and Ubuntu: python3-wheel; else: pip install wheel)"
  install_into "$stage/tessera_train"
  install -D -s "$build/bin/tessera_start" "$stage/$name.data/scripts/tessera"
  install -D -m 644 -t "$stage/$name.data/data/share/man/man1" "$stage/tessera_train/share/man/man1/tessera.1"
  glibc=$(oldest_glibc "$stage")
  mkdir "$stage/$name.dist-info"
  wheel_metadata "$stage/tessera_train" >"$stage/$name.dist-info/METADATA"
  cat >"$stage/$name.dist-info/WHEEL" <<END_OF_FILE
Wheel-Version: 1.0
Generator: tools/package.sh
Root-Is-Purelib: false
Tag: py3-none-manylinux_${glibc}_$(uname -m)
END_OF_FILE
  rm -f "$out"/tessera_train-*.whl
  "$python" -m wheel pack "$stage" --dest-dir "$out" >"$WORK/log" || die "wheel pack failed: $(tail -1 "$WORK/log")"
  file=$(echo "$out"/tessera_train-*.whl)
  report "$file"
  bytes=$(stat -c %s "$file")
  if ((bytes > MAX_WHEEL_MB * 1000000)); then
    rm "$file"
    die "the wheel is larger than $MAX_WHEEL_MB MB, so it is removed: see what grew in it, or raise MAX_WHEEL_MB in tools/package.sh"
  fi
}

make_tarball() {
  local name
  name=tessera-$VERSION-$(uname -m)$([ "$cuda" = no ] || echo -cuda)
  install_with_torch "$WORK/$name"
  tar -C "$WORK" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf - "$name" |
    pigz -n -p 8 >"$out/$name.tar.gz"  # pigz writes the same bytes for any number of threads above 1
  report "$out/$name.tar.gz"
}

make_deb() {
  local stage=$WORK/deb file from to depends
  install_with_torch "$stage/opt/tessera"
  depends=$(deb_depends "$stage/opt/tessera")
  mkdir -p "$stage/usr/bin" "$stage/DEBIAN"
  ln -s /opt/tessera/bin/tessera "$stage/usr/bin/tessera"
  while read -r from to; do
    for file in "$stage/opt/tessera/share/$from"/*; do
      [ -f "$file" ] || continue
      mkdir -p "$stage/usr/share/$to"
      ln -s "/opt/tessera/share/$from/$(basename "$file")" "$stage/usr/share/$to/"
    done
  done <<'END_OF_LIST'
man/man1 man/man1
bash-completion/completions bash-completion/completions
zsh/site-functions zsh/vendor-completions
fish/vendor_completions.d fish/vendor_completions.d
END_OF_LIST
  cat >"$stage/DEBIAN/control" <<END_OF_FILE
Package: tessera$([ "$cuda" = no ] || printf '%s\n' -cuda 'Conflicts: tessera')
Version: $VERSION
Architecture: $(dpkg --print-architecture)
Maintainer: the developers of Tessera
Section: science
Priority: optional
Installed-Size: $(du -sk "$stage/opt" | cut -f1)
Depends: $depends
Recommends: openmpi-bin
Description: $SUMMARY
$(description | fold -s -w 78 | sed 's/ *$//; s/^/ /')
END_OF_FILE
  find "$stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  rm -f "$out/tessera$([ "$cuda" = no ] || echo -cuda)_"*.deb
  dpkg-deb --root-owner-group -Zzstd --build "$stage" "$out" >"$WORK/log" || die "dpkg-deb failed: $(tail -1 "$WORK/log")"
  report "$out/tessera$([ "$cuda" = no ] || echo -cuda)_"*.deb
}

# --- the folder that all of them hold ---------------------------------------------------------------

# install_into PREFIX
install_into() {
  cmake -DCMAKE_INSTALL_PREFIX="$1" -DTESSERA_BUNDLE=ON -P "$build/cmake_install.cmake" >"$WORK/log" 2>&1 ||
    die "the installation from $build failed:
$(grep -v '^ *$' "$WORK/log" | tail -8)"
  local file
  while IFS= read -r file; do strip --strip-unneeded "$file"; done < <(binaries "$1")
  add_licences "$1"
  chmod -R u=rwX,go=rX "$1"
  check_relocatable "$1"
}

# Also libtorch with what it needs, and its headers for the CMake package. Libraries that the CPU does not need make up
# nine tenths of a torch wheel with CUDA's.
install_with_torch() {
  local libraries folder roots=(libtorch_cpu.so libc10.so)
  install_into "$1"
  if [ "$cuda" = yes ]; then
    [ -f "$1/lib/libtessera_cuda.so" ] || die "--cuda: this build has no CUDA flavour: it needs nvcc and a CUDA torch (./x help)"
    # cuDNN, cuBLAS and NVRTC load further libraries of their own by name.
    mapfile -t -O 2 roots < <(cd "$TORCH_DIR/lib" && ls libtorch_cuda*.so libc10_cuda.so libcaffe2_nvrtc.so &&
      cd ../.. && find nvidia -path '*/lib/*.so*' -printf '%f\n')
  else
    rm -f "$1/lib/libtessera_cuda.so"
  fi
  libraries=$(torch_libraries "${roots[@]}")
  xargs -d '\n' cp -L -t "$1/lib" <<<"$libraries"
  mkdir "$1/libtorch"
  cp -rL "$TORCH_DIR/include" "$1/libtorch/include"
  ln -s ../lib "$1/libtorch/lib"
  for folder in "$TORCH_DIR"/../{torch,nvidia_*}-*.dist-info/licenses; do
    [ ! -d "$folder" ] || cp -r "$folder" "$1/share/doc/tessera/licences/$(basename "${folder%-*.dist-info/licenses}")"
  done
  chmod -R u=rwX,go=rX "$1"
  check_relocatable "$1"
}

# torch_libraries NAME...: the files, in torch's and NVIDIA's packages, of these and of all that they need.
torch_libraries() {
  local queue=("$@") name file seen=' '
  while [ ${#queue[@]} -gt 0 ]; do
    name=${queue[0]} queue=("${queue[@]:1}")
    [[ $seen != *" $name "* ]] || continue
    seen+="$name "
    file=$(in_torch "$name")
    [ -n "$file" ] || die "$name, which libtorch needs, is neither in $TORCH_DIR nor in the packages beside it"
    echo "$file"
    mapfile -t -O ${#queue[@]} queue < <(needed "$file" | grep -vxE "$SYSTEM_LIBRARIES")
  done
}
in_torch() { find -L "$TORCH_DIR/lib" "$TORCH_DIR"/../torch.libs "$TORCH_DIR"/../nvidia/*/lib -maxdepth 1 -name "$1" -print -quit 2>/dev/null; }

binaries() { find "$1"/bin "$1"/lib -type f \( -perm -100 -o -name '*.so*' \) ! -path '*/cmake/*'; }
needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }

# The licences of what is inside ask that their texts go with it.
add_licences() {
  local package folder file
  mkdir -p "$1/share/doc/tessera/licences"
  for package in $({ needs build && needs comfort; } | awk '$3 == "header" && $1 !~ /gtest/ {print $1}'); do
    if [ -f "/usr/share/doc/$package/copyright" ]; then
      cp -L "/usr/share/doc/$package/copyright" "$1/share/doc/tessera/licences/${package%-dev}"
    else
      note "no licence text of $package on this machine: add it before you give the package to others"
    fi
  done
  # Arrow's headers are compiled in.
  folder=$(sed -n 's/^PYARROW_DIR:PATH=//p' "$build/CMakeCache.txt")
  for file in "${folder:-$DEPS/pyarrow/pyarrow}"/../pyarrow-*.dist-info/licenses/*.txt; do
    install -D -m 644 "$file" "$1/share/doc/tessera/licences/arrow/$(basename "$file")"
  done
}

# check_relocatable PREFIX: nothing may lead to the build machine, and every library must be inside, in torch's packages
# or on every system; MPI is loaded when ranks need it, pyarrow when a file does.
check_relocatable() {
  local file entry rpath
  while IFS= read -r file; do
    rpath=$(readelf -d "$file" | sed -nE 's/.*\((RPATH|RUNPATH)\).*\[(.*)\]/\2/p')
    # Ours goes before LD_LIBRARY_PATH; NVIDIA's libraries have a RUNPATH.
    [[ $(basename "$file") != *tessera* ]] || ! readelf -d "$file" | grep -q '(RUNPATH)' || die "${file#"$1/"} has a RUNPATH, not an RPATH"
    for entry in ${rpath//:/ }; do
      [[ $entry == \$ORIGIN* ]] || die "${file#"$1/"} looks for libraries in $entry: only folders relative to it (\$ORIGIN) can be packaged"
    done
    for entry in $(needed "$file" | grep -vxE "$SYSTEM_LIBRARIES"); do
      [ -e "$1/lib/$entry" ] || [ -n "$(in_torch "$entry")" ] || [[ $file == */libtessera_mpi.so && $entry == libmpi.so.* ]] ||
        [[ $file == */libtessera_arrow.so && $entry =~ ^lib(arrow|parquet)\.so\. ]] ||
        die "${file#"$1/"} needs $entry, which is neither in the package, nor torch's, nor on every system"
      [ -n "$rpath" ] || die "${file#"$1/"} needs $entry, but has no RPATH to find it by"
    done
  done < <(binaries "$1")
  file=$(grep -rlIF -e "$ROOT" -e "$TORCH_DIR" "$1" | head -1 || true)
  [ -z "$file" ] || die "${file#"$1/"} names a folder of this machine: $(grep -m1 -oE "($ROOT|$TORCH_DIR)[^ \";]*" "$file")"
}

# --- what the packages say of themselves ------------------------------------------------------------

# wheel_metadata PREFIX
wheel_metadata() {
  local torch python_versions
  python_versions=$(sed -n 's/^Requires-Python: //p' "$TORCH_DIR"/../torch-*.dist-info/METADATA) ||
    die "no torch-*.dist-info beside $TORCH_DIR: it says which Pythons fit"
  torch=$(sed -n 's/^set(_tessera_torch_version "\([0-9]*\.[0-9]*\)\..*/\1/p' "$1/lib/cmake/tessera/tesseraConfig.cmake")
  [ -n "$torch" ] || die "lib/cmake/tessera/tesseraConfig.cmake does not say with which torch Tessera was built"
  cat <<END_OF_FILE
Metadata-Version: 2.1
Name: tessera_train
Version: $VERSION
Summary: $SUMMARY
Requires-Python: $python_versions
Requires-Dist: torch (==$torch.*)
Provides-Extra: mpi
Requires-Dist: openmpi ; extra == 'mpi'
Provides-Extra: arrow
Requires-Dist: pyarrow (==${PYARROW_VERSION%.*}.*) ; extra == 'arrow'
Description-Content-Type: text/markdown

$(description)
END_OF_FILE
}

# README's first paragraph, as one line.
description() {
  awk '/^[^#]/ { text = text (text == "" ? "" : " ") $0; next } text != "" { exit } END { print text }' README.md
}

# oldest_glibc FOLDER: X_Y of the oldest glibc whose systems have every symbol that the binaries ask for. libstdc++ is the
# system's too: the second number is the glibc from which on systems have the first as GLIBCXX_3.4.N (auditwheel's list).
oldest_glibc() {
  local versions glibc cxx step
  versions=$(find "$1" -type f \( -perm -100 -o -name '*.so*' \) -exec readelf --version-info --wide {} + 2>/dev/null |
    grep -oE '\b(GLIBC_2|GLIBCXX_3\.4)\.[0-9]+' | sort -Vu)
  glibc=$(sed -n 's/GLIBC_2\.//p' <<<"$versions" | tail -1)
  cxx=$(sed -n 's/GLIBCXX_3\.4\.//p' <<<"$versions" | tail -1)
  for step in 24:28 28:31 29:34 30:35 33:39; do ((cxx > ${step%:*})) || break; done
  ((cxx <= ${step%:*})) || die "GLIBCXX_3.4.$cxx is newer than the list in tools/package.sh: add the glibc of the systems that have it"
  echo "2_$((glibc > ${step#*:} ? glibc : ${step#*:}))"
}

# deb_depends PREFIX: versions by dpkg's own tool. Only of what every system has: the rest is inside (check_relocatable),
# and MPI and pyarrow are loaded when they are needed.
deb_depends() {
  local files
  mkdir -p "$WORK/shlibdeps/debian"
  printf 'Source: tessera\n\nPackage: tessera\nArchitecture: any\n' >"$WORK/shlibdeps/debian/control"
  mapfile -t files < <(binaries "$1" | grep -v '/libtessera_\(mpi\|arrow\)\.so$')
  (cd "$WORK/shlibdeps" && dpkg-shlibdeps -O --ignore-missing-info --warnings=0 -l"$1/lib" "${files[@]}") >"$WORK/log" 2>&1 ||
    die "dpkg-shlibdeps failed: $(tail -1 "$WORK/log")"
  sed -n 's/^shlibs:Depends=//p' "$WORK/log" | grep -oE '\b(libc6|libgcc-s1|libstdc\+\+6) \([^)]*\)' | paste -sd, | sed 's/,/, /g'
}

megabytes() { awk -v bytes="$(stat -c %s "$1")" 'BEGIN { printf "%.1f MB", bytes / 1e6 }'; }
report() { note "${1#"$ROOT/"}: $(megabytes "$1")"; }

main "$@"
