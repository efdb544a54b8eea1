#!/usr/bin/env bash
# Tokens per second on one thread: Tessera against `tokenizers` on SQuAD's contexts, alternating in one run. Also checks
# that the time for text without spaces grows linearly: 16 times the text, up to a megabyte, takes 16 times as long, not
# more. TESSERA_TEST_DATA: a folder with squad/ and gpt2_fallback/; the default is the committed sample.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$(tools/references/venv.sh)
exec "$python" bench/tokenizer_bench.py "${TESSERA_BUILD:-build/release}/bin/tokenizer_bench" "${TESSERA_TEST_DATA:-}"
