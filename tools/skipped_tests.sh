#!/usr/bin/env bash
# skipped_tests.sh BUILD_FOLDER: what the last ctest skipped and why, since ctest prints no reasons. GoogleTest writes
# "FILE:LINE: Skipped" and the reason below it; our scripts write "skipped: REASON".
set -euo pipefail
log=$1/Testing/Temporary/LastTest.log
[ -f "$log" ] || exit 0
reasons=$(awk '
  is_reason { print place ": " $0; is_reason = 0; next }
  /: Skipped$/ { place = $0; sub(/: Skipped$/, "", place); sub(/^.*\//, "", place); is_reason = 1; next }
  /^[0-9]+\/[0-9]+ Test: / { name = $3 }
  /^skipped: / { sub(/^skipped: /, ""); print name ": " $0 }
' "$log" | sort | uniq)
[ -z "$reasons" ] || printf 'Skipped, and why:\n%s\n' "$(printf '%s\n' "$reasons" | sed 's/^/  /')"
