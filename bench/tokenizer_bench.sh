#!/usr/bin/env bash
# Ids and decoded text of odd strings with published vocabularies, and tokens per second on one thread: Tessera against
# `tokenizers`, the speeds on SQuAD's contexts, alternating in one run. Also checks that the time for text without spaces
# grows linearly: 16 times the text, up to a megabyte, takes 16 times as long, not more. TESSERA_TEST_DATA: a folder with
# squad/ and gpt2_fallback/; the default is the committed sample.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
programs=${TESSERA_BUILD:-build/release}/bin vocabularies=.deps/references/published
python=$(tools/references/venv.sh vocabularies)
[ -f $vocabularies/complete ] || { "$python" tools/references/real_vocabularies.py $vocabularies >&2 && touch $vocabularies/complete; }
"$python" tools/references/check_vocabularies.py "$programs/tessera" $vocabularies
exec "$python" bench/tokenizer_bench.py "$programs/tokenizer_bench" $vocabularies "${TESSERA_TEST_DATA:-}"
