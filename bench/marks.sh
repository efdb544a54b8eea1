# shellcheck shell=bash
# Sourced by benchmarks: what they promise, and whether it was reached. They end with `exit "$status"`.
status=0

# mark NAME VALUE least|most LIMIT: a miss makes the status 3
mark() {
  local verdict=met sign='>='
  [ "$3" = least ] || sign='<='
  awk "BEGIN {exit !($2 $sign $4)}" || { verdict=missed; status=3; }
  printf 'mark: %s: %.4g (at %s %s): %s\n' "$1" "$2" "$3" "$4" "$verdict"
}
ratio() { awk "BEGIN {printf \"%.5g\", $1 / $2}"; }
