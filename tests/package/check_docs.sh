#!/usr/bin/env bash
# The program text in docs/library.md must equal the example, which tests/package/run.sh builds and runs.
#
# usage: check_docs.sh SOURCE_DIR
set -euo pipefail
example=$1/examples/own_model/own_model.cc page=$1/docs/library.md
text=$(sed -n '/\[docs: begin\]/,/\[docs: end\]/p' "$example" | sed '1d;$d')
[ -n "$text" ] || { echo "no text between [docs: begin] and [docs: end] in $example"; exit 1; }
[[ $(<"$page") == *"$text"* ]] || { echo "$page does not show these lines of $example:"; echo "$text"; exit 1; }
