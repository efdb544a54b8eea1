#!/usr/bin/env bash
# page_browser_test.sh TESSERA FOLDER: makes the page of made-up runs and opens it in a real browser, which then sorts,
# filters and hovers (#selftest in page.js). Ends with 77, skipped, where there is no Chromium.
set -euo pipefail
tessera=$1
folder=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
  echo "skipped: no chromium on this machine (Debian: apt-get install chromium)"
  exit 77
fi

fail() {
  echo "FAILED: $1"
  exit 1
}

rm -rf "$folder"
mkdir -p "$folder"
"$here/make_demo_runs.sh" "$folder/runs"
"$tessera" report "$folder/runs" -o "$folder/report.html" --title 'Demo <b>&'

# open_page NAME: opens NAME.html; leaves NAME.dom, NAME.log and NAME.net, a log of every request that was tried. None
# leaves this machine: no host name is resolved.
open_page() {
  "$browser" --headless=new --no-sandbox --disable-gpu --disable-background-networking --no-first-run \
    --host-resolver-rules='MAP * ~NOTFOUND' --user-data-dir="$folder/$1.profile" --log-net-log="$folder/$1.net" \
    --enable-logging=stderr --v=0 --virtual-time-budget=5000 --dump-dom "file://$folder/$1.html#selftest" \
    > "$folder/$1.dom" 2> "$folder/$1.log" || fail "the browser ended with $?: $(tail -3 "$folder/$1.log")"
  [ -s "$folder/$1.net" ] || fail "the browser wrote no log of its requests"
}
# The browser itself asks for updates and the like. 101845102 marks what a page asks for (blink_resource_loader in
# Chromium's list of network annotations).
requests_of() {
  grep -oE '"traffic_annotation":101845102,"url":"(https?|wss?|ftp):[^"]*"' "$folder/$1.net" || true
}

# That this test sees requests at all: the same page with a picture from elsewhere.
sed 's|<meta http-equiv="Content-Security-Policy"[^>]*>||; s|<main>|<main><img src="http://elsewhere.test/x.png">|' \
  "$folder/report.html" > "$folder/asking.html"
open_page asking
[ -n "$(requests_of asking)" ] || fail "a page that asks for a picture was not noticed"

open_page report
[ -z "$(requests_of report)" ] || fail "the page asks the network: $(requests_of report)"
if grep -q 'CONSOLE' "$folder/report.log"; then fail "messages on the console: $(grep CONSOLE "$folder/report.log")"; fi
if grep -q 'data-error=' "$folder/report.dom"; then fail "script error: $(grep -o 'data-error="[^"]*"' "$folder/report.dom")"; fi

result=$(grep -o 'data-selftest="[^"]*"' "$folder/report.dom" | sed 's/&quot;/"/g; s/&amp;/\&/g; s/&lt;/</g; s/&gt;/>/g') ||
  fail "the page's self-test did not run"
expect() {
  case "$result" in
    *"$1"*) ;;
    *) fail "expected $1 in $result" ;;
  esac
}
expect '"focused":true'                                             # headers are buttons: keyboards reach them
expect '"before":["bloom/<script>alert(1)<script>","bloom/full_shard_2",'
expect '"ascending":["weak/8_gpus","weak/4_gpus","weak/2_gpus","bloom/zero2_offload",'  # 5.31, 5.8, 6.1, 6.8 samples/s
expect '"sort":"ascending"'
expect '"descending":["resnet/4_gpus","bloom/full_shard_8",'        # 2710, 75.2 samples/s
expect '"filtered":["bloom/'
expect '"shown":"9 of 14 runs"'                                     # of the 14, those in bloom/
expect '"byStatus":["bloom/zero3_batch_16"]'                        # the last choice: failed
expect '"incomplete":[]'                                            # every plot has title, axes, ticks and legend
expect '"resources":[]'
expect '"hover":"step '
expect '"theme":"dark"'
plots=$(grep -oE '"plots":[0-9]+' <<< "$result" | cut -d: -f2)
[ "$plots" -ge 100 ] || fail "only $plots plots"
echo "the page of 14 runs: $plots plots, sorted and filtered, no script error, no request"
