# shellcheck shell=bash
# Sourced by ./x: one test by its name, after building only the program that holds it. ctest knows few names, since most
# programs run whole; GoogleTest's names stand in the sources, which CMake lists per program in build/release/test_programs.

# pattern_of CTEST_ARGS...: what follows -R; nothing without it.
pattern_of() {
  while [ $# -gt 0 ]; do
    case $1 in
      -R | --tests-regex) printf '%s' "${2:-}" ;;
      --tests-regex=*) printf '%s' "${1#*=}" ;;
    esac
    shift
  done
}

# google_tests PATTERN: those whose names match, as "PROGRAM SUITE FILTER".
google_tests() {
  local list program
  for list in build/release/test_programs/*.sources; do
    program=$(basename "$list" .sources)
    xargs -d '\n' sed -nE 's/^(TEST|TEST_F|TEST_P)\(([A-Za-z0-9_]+), *([A-Za-z0-9_]+)\).*/\1 \2 \3/p' <"$list" |
      awk -v pattern="$1" -v program="$program" '{
        name = $2 "." $3
        if (name ~ pattern) print program, $2, $1 == "TEST_P" ? "*/" name "/*" : name
      }'
  done
}

# target_of CTEST_NAME: what must be built for it; nothing: everything.
target_of() {
  local program=${1%%.*}
  if [ -e "build/release/test_programs/$program.sources" ]; then
    echo "$program"
  elif [[ $1 == docs.settings* ]]; then
    echo tessera
  elif [[ $1 == fuzz.*_corpus ]]; then
    program=${1#fuzz.}
    echo "${program%_corpus}_fuzz"
  else
    google_tests "^${program}[.]" | cut -d' ' -f1 | sort -u
  fi
}

# run_google_tests PROGRAM FILTER
run_google_tests() {
  local starter=()
  [ ! -e "build/release/test_programs/$1.starter" ] || mapfile -t starter <"build/release/test_programs/$1.starter"
  OMP_WAIT_POLICY=passive "${starter[@]+"${starter[@]}"}" "build/release/bin/$1" "--gtest_filter=$2"
}

# test_named PATTERN CTEST_ARGS...: ctest's tests of that name, then GoogleTest's that they leave out.
test_named() {
  local pattern=$1 entries=() targets=() entry found program status=0
  shift
  configure "$(default_preset)"
  mapfile -t entries < <(ctest --test-dir build/release -N "$@" | sed -nE 's/^ *Test *#[0-9]+: //p')
  local suites=" ${entries[*]:-} " tests
  tests=$(google_tests "$pattern" | while read -r program suite filter; do
    [[ $suites == *" $suite "* ]] || echo "$program $filter"
  done | sort -u)
  [ ${#entries[@]} -gt 0 ] || [ -n "$tests" ] || die "no test of ctest or GoogleTest matches '$pattern'" 2
  for entry in "${entries[@]+"${entries[@]}"}"; do
    found=$(target_of "$entry")
    targets+=("${found:-all}")
  done
  mapfile -t targets < <(printf '%s\n' "${targets[@]+"${targets[@]}"}" "$(cut -d' ' -f1 <<<"$tests")" | sed '/^$/d' | sort -u)
  say "Building: ${targets[*]}"
  cmake --build build/release -j "$(num_jobs)" --target "${targets[@]}"
  if [ ${#entries[@]} -gt 0 ]; then run_ctest "$@" || status=$?; fi
  [ -z "$tests" ] || while read -r program found; do
    run_google_tests "$program" "$found" </dev/null || status=$?
  done < <(awk '{ of[$1] = of[$1] ":" $2 } END { for (program in of) print program, substr(of[program], 2) }' <<<"$tests")
  return "$status"
}
