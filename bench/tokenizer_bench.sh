#!/usr/bin/env bash
# Tokens a second of one thread: ours against `tokenizers` on SQuAD's contexts, in one run, turn by turn; and that a
# megabyte without spaces takes its sixteenfold, not more. TESSERA_TEST_DATA: a folder that holds squad/ and
# gpt2_fallback/; without it the committed sample serves.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$(tools/references/venv.sh)
exec "$python" bench/tokenizer_bench.py "${TESSERA_BUILD:-build/release}/bin/tokenizer_bench" "${TESSERA_TEST_DATA:-}"
