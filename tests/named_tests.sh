#!/usr/bin/env bash
# What `./x test -R NAME` builds and runs, as tools/named_tests.sh finds it in the sources.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/named_tests.sh
. tools/named_tests.sh

# expect WHAT FOUND WANTED
expect() {
  [ "$2" = "$3" ] || { printf '%s: found\n%s\ninstead of\n%s\n' "$1" "$2" "$3" >&2; exit 1; }
}
expect 'a test of a layer' "$(google_tests 'Flow.RefusesIntervals')" 'unit_test Flow Flow.RefusesIntervalsThatAreNone'
expect 'a test with parameters' "$(google_tests '^RealTorchFile[.]EveryTr')" \
  'unit_test RealTorchFile */RealTorchFile.EveryTruncationIsRefused/*'
expect 'a suite' "$(google_tests '^Listeners[.]' | cut -d' ' -f1 | sort -u)" unit_test
expect 'no test' "$(google_tests 'NoSuchTest')" ''
expect 'what a part of a program needs' "$(target_of unit_test.2)" unit_test
expect 'what a suite of commands needs' "$(target_of RunCommand)" command_test
expect 'what a script needs' "$(target_of slurm.up)" ''
expect 'the pattern' "$(pattern_of -V -R 'a b' -j 2)" 'a b'
[ -s build/release/test_programs/mpi_world_test.starter ] || { echo 'mpi_world_test has no starter' >&2; exit 1; }
