#!/usr/bin/env bash
# What `./x demo` shows once everything is built: this machine as Tessera sees it, and four ranks that talk.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tessera=build/release/bin/tessera
ranks=4
command=("$tessera" launch --nproc_per_node "$ranks" comm-test -b 1M -e 64M -f 4 -n 10)

show() { printf '\n==> %s\n' "$*"; }

show "This machine ($tessera env)"
"$tessera" env

show "$ranks ranks add up buffers of 1 to 64 MiB (${command[*]})"
"${command[@]}"

cat <<END_OF_TEXT

==> What you saw: the launcher started $ranks processes on this machine; they met, added their buffers
    together (all-reduce) over MPI, and every sum was checked: the columns '#wrong' are zero.
    'busbw' is what the links between the ranks carry, in GB/s, whatever the number of ranks.

    To try next:
      $tessera comm-test --help   other operations, sizes and the bandwidth gate
      $tessera env --json         the same facts for scripts
      ./x test                                   every test
END_OF_TEXT
