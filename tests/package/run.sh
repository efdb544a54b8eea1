#!/usr/bin/env bash
# Installs Tessera, moves the prefix, builds the examples against it by find_package(tessera) alone, and runs them on
# one and two ranks: all strategies must print the same losses.
#
# usage: run.sh BUILD_DIR SOURCE_DIR WORK_DIR CXX MPIRUN...
set -euo pipefail
build=$1 source=$2 work=$3 cxx=$4
mpirun=("${@:5}")
export OMP_NUM_THREADS=1
export CUDA_VISIBLE_DEVICES=  # bits are compared: one kind of processor

die() {
  echo "FAILED: $1"
  exit 1
}

rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/first" >"$work/install.log" || { cat "$work/install.log"; die "cmake --install"; }
mv "$work/first" "$work/prefix"
prefix=$work/prefix
grep -rn "$source" "$prefix/lib/cmake/tessera" | grep -v torch && die "the package names the source folder"
"$prefix/bin/tessera" --version

# The public headers include nothing from src/: only they are installed.
launcher=()
! command -v ccache >/dev/null || launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
build_example() {
  cmake -S "$source/examples/$1" -B "$work/$1" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" \
    -DCMAKE_CXX_FLAGS="-O1 -Wall -Wextra -Werror" "${launcher[@]}" && cmake --build "$work/$1"
}
build_example own_model >"$work/own_model.log" 2>&1 &
first=$!
build_example bloom >"$work/bloom.log" 2>&1 || { cat "$work/bloom.log"; die "examples/bloom does not build"; }
wait $first || { cat "$work/own_model.log"; die "examples/own_model does not build"; }

# A missing libtorch is named, not guessed.
if cmake -S "$source/examples/bloom" -B "$work/lost" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" \
  -DTORCH_DIR="$work/nowhere" >"$work/lost.log" 2>&1; then
  die "a package without its libtorch was found"
fi
tr -s ' \n' ' ' <"$work/lost.log" | grep -q "No libtorch (lib/libtorch_cpu.so) in $work/nowhere" ||
  { cat "$work/lost.log"; die "the message about a missing libtorch"; }
"$work/own_model/own_model" --help | grep -q "strategies: single ddp zero0" || die "own_model --help"

# losses NAME HOW PROGRAM ARGUMENTS...: writes its loss lines to $work/NAME. HOW: alone, launch or mpirun, with 2 ranks.
losses() {
  local name=$1 how=$2
  local program=("$work/$3/$3" "${@:4}")
  case $how in
    alone) ;;
    launch) program=("$prefix/bin/tessera" launch --nproc_per_node 2 "${program[@]}") ;;
    mpirun) program=("${mpirun[@]}" -np 2 "${program[@]}") ;;
  esac
  "${program[@]}" >"$work/$name.log" 2>&1 || { cat "$work/$name.log"; die "$name ended with status $?"; }
  grep -o 'step [0-9]* loss .*' "$work/$name.log" >"$work/$name" || { cat "$work/$name.log"; die "$name printed no loss"; }
}

same() {
  cmp "$work/$1" "$work/$2" || { diff "$work/$1" "$work/$2"; die "$1 and $2 print different losses"; }
}

# Different numbers of ranks add in a different order.
close() {
  paste "$work/$1" "$work/$2" |
    awk '{ d = $4 - $8; if (d < 0) d = -d; if (d > 1e-4 * $4) { print; bad = 1 } } END { exit bad }' ||
    die "the losses of $1 and $2 differ by more than 1e-4"
}

for way in blocks sequential whole; do
  losses "$way-single" alone own_model single "$way"
  losses "$way-alone-full_shard" alone own_model full_shard "$way"
  same "$way-single" "$way-alone-full_shard"
  losses "$way-ddp" launch own_model ddp "$way" "$work/$way-ddp.safetensors"
  close "$way-single" "$way-ddp"
  losses "$way-full_shard" launch own_model full_shard "$way" "$work/$way-full_shard.safetensors"
  same "$way-ddp" "$way-full_shard"
  cmp "$work/$way-ddp.safetensors" "$work/$way-full_shard.safetensors" || die "$way: the saved weights differ"
done
for strategy in zero1 zero2 shard_grad_op; do
  losses "blocks-$strategy" launch own_model $strategy blocks
  same blocks-ddp "blocks-$strategy"
done
losses blocks-mpirun mpirun own_model zero3 blocks
same blocks-ddp blocks-mpirun

# One rank resumes from what two ranks saved, under another strategy.
saved=$work/blocks-full_shard.safetensors
losses resumed-alone alone own_model single blocks "" "$saved"
losses resumed-zero2 launch own_model zero2 blocks "" "$saved"
close resumed-alone resumed-zero2
[ "$(head -1 "$work/resumed-alone")" != "$(head -1 "$work/blocks-single")" ] || die "the saved weights were not taken"

losses bloom-single alone bloom single
losses bloom-ddp launch bloom ddp - - "$work/bloom-model"
for strategy in zero2 full_shard; do
  losses "bloom-$strategy" launch bloom $strategy
  same bloom-ddp "bloom-$strategy"
done
losses bloom-resumed launch bloom zero3 "$work/bloom-model" -
"$prefix/bin/tessera" inspect "$work/bloom-model" >"$work/inspect.log" || { cat "$work/inspect.log"; die "tessera inspect"; }

# Misuse ends every rank with one message.
if "$prefix/bin/tessera" launch --nproc_per_node 2 "$work/own_model/own_model" fullshard >"$work/wrong.log" 2>&1; then
  die "an unknown strategy was accepted"
fi
grep -q "strategy 'fullshard' is not known, did you mean 'full_shard'" "$work/wrong.log" ||
  { cat "$work/wrong.log"; die "the message about an unknown strategy"; }
rm -rf "$prefix"
echo "passed"
