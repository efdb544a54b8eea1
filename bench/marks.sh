# shellcheck shell=bash
# Sourced by benchmarks: what they promise, and whether it was reached. They end with `exit "$status"`.
status=0

# mark NAME VALUE least|most LIMIT: a miss makes the status 3; a value that is no number ends the benchmark with 1.
mark() {
  local verdict
  verdict=$(awk -v value="$2" -v how="$3" -v limit="$4" 'BEGIN {
    if (value !~ /^-?[0-9.]+(e[-+]?[0-9]+)?$/ || how !~ /^(least|most)$/) exit 1
    print (how == "least" ? value + 0 >= limit + 0 : value + 0 <= limit + 0) ? "met" : "missed"
  }') || { echo "$1: '$2' cannot be compared (at $3 $4): the measurement is broken" >&2; exit 1; }
  [ "$verdict" = met ] || status=3
  printf 'mark: %s: %.4g (at %s %s): %s\n' "$1" "$2" "$3" "$4" "$verdict"
}
# Nothing, if it is no number.
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (b + 0 != 0) printf "%.5g", a / b }'; }
# marked COMMAND...: one that prints marks itself. If it is broken, so is the benchmark.
marked() {
  local one=0
  "$@" || one=$?
  case $one in
    0) ;;
    3) status=3 ;;
    *) exit "$one" ;;
  esac
}
