# shellcheck shell=bash
# Sourced by tools/setup.sh: finds or downloads pyarrow, which holds Apache Arrow's C++ library with its headers. The
# plug-in that reads Parquet and Arrow files is built for its minor version alone: the names of its libraries change with
# the next. Sets PYARROW_DIR (the folder with include/).

PYARROW_VERSION=26.0.1  # also read by cmake/Arrow.cmake and tools/package.sh

# find_pyarrow: PYARROW_DIR if set, else the active Python's pyarrow, else the one in .deps; returns 1 if none fits.
find_pyarrow() {
  local found
  if [ -n "${PYARROW_DIR:-}" ]; then
    is_pinned_pyarrow "$PYARROW_DIR" || die "PYARROW_DIR=$PYARROW_DIR cannot be used: it is not the folder 'pyarrow' of pyarrow ${PYARROW_VERSION%.*}"
  else
    found=$(python_package pyarrow)
    if [ -z "$found" ] || ! is_pinned_pyarrow "$found"; then
      found=$DEPS/pyarrow/pyarrow
      is_pinned_pyarrow "$found" || return 1
    fi
    PYARROW_DIR=$found
  fi
}

is_pinned_pyarrow() {
  grep -qsF "define ARROW_VERSION_STRING \"${PYARROW_VERSION%.*}." "$1/include/arrow/util/config.h" &&
    compgen -G "$1/libparquet.so.*" >/dev/null
}

# ensure_pyarrow required|optional: after ensure_packages.
ensure_pyarrow() {
  local package=pyarrow==$PYARROW_VERSION
  find_pyarrow && return
  if [ "$1" = optional ] && grep -qsx "$package" "$OPTIONAL_TRIED"; then return; fi
  lock_downloads pyarrow
  if ! find_pyarrow; then  # another ./x may have fetched it meanwhile
    # shellcheck disable=SC2034 # ensure, in tools/setup.sh, reads it
    DID_SOMETHING=yes
    say "Downloading pyarrow into .deps/pyarrow (55 MB): $package"
    if ! pip_into pyarrow "$package"; then
      [ "$1" = optional ] || die "pip could not download $package: see the message above. To use an existing one: PYARROW_DIR=<folder> ./x ..."
      echo "$package" >>"$OPTIONAL_TRIED"
      note "continuing without $package: Parquet and Arrow files will not be read (not tried again; remove .deps/optional-tried to retry)"
    fi
  fi
  exec 9>&-
  find_pyarrow || [ "$1" = optional ]
}
