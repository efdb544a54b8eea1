#!/usr/bin/env bash
# Time to tokenise a gigabyte of text with all cores, first and second start, and the memory for it: Tessera beside
# `datasets` + `tokenizers`, one after the other. TESSERA_TEST_DATA=FOLDER uses the words of FOLDER/squad/dev-v1.1.json
# and GPT-2's vocabulary; the default is the repository's sample. MEGABYTES: of text, 1000 by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=bench/marks.sh
. bench/marks.sh
program=${TESSERA_BUILD:-build/release}/bin/row_data_bench
python=$(tools/references/venv.sh rows)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1 HF_HOME=$work/hf

tokenizer=$work/tokenizer
mkdir "$tokenizer"
if [ -n "${TESSERA_TEST_DATA:-}" ]; then
  source=$TESSERA_TEST_DATA/squad/dev-v1.1.json
  "$python" bench/row_data_bench.py --gpt2 "$TESSERA_TEST_DATA/gpt2_fallback" "$tokenizer/tokenizer.json"
else
  source=tests/data/squad/sample-v1.1.json
  cp tests/data/tokenizer/bloom_like.json "$tokenizer/tokenizer.json"
fi
rows=$work/rows.jsonl
"$python" bench/row_data_bench.py --rows "$source" "$rows" "${MEGABYTES:-1000}"
echo "$(stat -c %s "$rows") bytes in $(wc -l <"$rows") documents, $(nproc) cores"

field() { cut -d' ' -f"$2" <<<"$1"; }
for turn in first second; do
  ours=$("$program" "$rows" "$tokenizer" "$work/ours")
  theirs=$("$python" bench/row_data_bench.py "$rows" "$tokenizer/tokenizer.json" "$work/theirs" 2>"$work/log") ||
    { cat "$work/log" >&2; exit 1; }
  [ "$(field "$ours" 3-4)" = "$(field "$theirs" 3-4)" ] || {
    echo "row_data_bench: the tokens differ: $ours / $theirs" >&2
    exit 1
  }
  [ "$turn" = first ] || [ "$(field "$ours" 2)" = found ] || { echo "row_data_bench: nothing was cached" >&2; exit 1; }
  echo "$turn start: ours $(field "$ours" 1) ms ($(field "$ours" 2)), $(field "$ours" 5) MiB;" \
    "datasets $(field "$theirs" 1) ms ($(field "$theirs" 2)), $(field "$theirs" 5) MiB"
  declare "ours_$turn=$ours" "theirs_$turn=$theirs"
done
echo "tokens: $(field "$ours" 3), the same in both; packed to 1024: $(field "$ours" 6) % of the positions stay empty"

# shellcheck disable=SC2154 # declared by name, above
mark "row data, first start, times as fast as datasets + tokenizers" \
  "$(ratio "$(field "$theirs_first" 1)" "$(field "$ours_first" 1)")" least 8
mark "row data, first start, memory in MiB" "$(field "$ours_first" 5)" most 2048
# shellcheck disable=SC2154
mark "row data, second start, ms until packed" "$(field "$ours_second" 1)" most 1000
exit "$status"
