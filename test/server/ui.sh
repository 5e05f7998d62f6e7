#!/bin/sh
# Replays what the Perfetto UI sends while it opens a trace, and compares our answers with Perfetto's: ui.sh SOURCE_DIR TP_SHELL
# ui-known.txt lists the answers (by their number) that are known to differ, with the reason; any other one fails.
set -eu
shared=${MERIDIAN_SHARED:-$1/../shared}
known=$(dirname "$0")/ui-known.txt
if [ ! -x "$shared/ui/compare" ]; then
    echo "skipped: no recorded answers in $shared/ui (MERIDIAN_SHARED names another place)"
    exit 77
fi
out=$(mktemp)
trap 'rm -f "$out" "$out.failed" "$out.known"' EXIT
"$shared/ui/compare" "$2" "$shared/conformance/traces/linux-sched.pftrace" "$shared/ui/load.request.bin.gz" \
    "$shared/ui/load.response.bin.gz" >"$out" 2>&1 || true
tail -n 1 "$out" | grep -q ' passed, ' || { cat "$out"; exit 1; }
sed -n 's/^FAIL \([0-9]*\) .*/\1/p' "$out" | sort >"$out.failed"
sed 's/ *#.*//; /^$/d' "$known" | sort >"$out.known"
tail -n 2 "$out"
new=$(comm -23 "$out.failed" "$out.known")
if [ -n "$new" ]; then
    echo "not known to differ:"
    for n in $new; do grep -A 1 "^FAIL $n " "$out"; done
    exit 1
fi
