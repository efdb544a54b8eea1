#!/usr/bin/env bash
# Time to tokenize a SQuAD file on the first and second start: Tessera and `datasets` + `transformers`, alternating, one
# thread each. TESSERA_TEST_DATA=FOLDER uses FOLDER/squad/dev-v1.1.json and GPT-2's vocabulary; the default is the
# repository's sample, repeated.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=bench/marks.sh
. bench/marks.sh
program=${TESSERA_BUILD:-build/release}/bin/text_data_bench
python=$(tools/references/venv.sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1 RAYON_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1 HF_HOME=$work/hf

if [ -n "${TESSERA_TEST_DATA:-}" ]; then
  file=$TESSERA_TEST_DATA/squad/dev-v1.1.json
  tokenizer=$TESSERA_TEST_DATA/gpt2_fallback
else
  file=$work/sample.json
  tokenizer=tests/data/squad/tokenizer
  "$python" - tests/data/squad/sample-v1.1.json "$file" <<'END_OF_PYTHON'
import json, sys
data = json.load(open(sys.argv[1], encoding="utf-8"))
json.dump({"data": data["data"] * 200}, open(sys.argv[2], "w", encoding="utf-8"))
END_OF_PYTHON
fi
"$python" bench/text_data_bench.py --rows "$file" "$work/rows.jsonl"

field() { cut -d' ' -f"$2" <<<"$1"; }
best() { sort -g | head -1; }
repetitions=${REPETITIONS:-3}
for ((i = 0; i < repetitions; ++i)); do
  for turn in first second; do
    ours=$("$program" "$file" "$tokenizer" "$work/ours-$i")
    theirs=$("$python" bench/text_data_bench.py "$work/rows.jsonl" "$tokenizer" "$work/theirs-$i" 2>"$work/log")
    [ "$(field "$ours" 3-4)" = "$(field "$theirs" 3-4)" ] || {
      echo "text_data_bench: the tokens differ: $ours / $theirs" >&2
      exit 1
    }
    [ "$turn" = first ] || [ "$(field "$ours" 2)" = found ] || { echo "text_data_bench: nothing was cached" >&2; exit 1; }
    echo "$turn start: ours $(field "$ours" 1) ms ($(field "$ours" 2)), datasets $(field "$theirs" 1) ms ($(field "$theirs" 2))"
    field "$ours" 1 >>"$work/ours-$turn"
    field "$theirs" 1 >>"$work/theirs-$turn"
  done
done
echo "tokens: $(field "$ours" 3), the same in both"

first=$(best <"$work/ours-first")
second=$(best <"$work/ours-second")
mark "text data, first start, times as fast as datasets + transformers" "$(ratio "$(best <"$work/theirs-first")" "$first")" least 3
mark "text data, second start, times as fast as datasets" "$(ratio "$(best <"$work/theirs-second")" "$second")" least 3
mark "text data, second start, ms" "$second" most 100
exit "$status"
