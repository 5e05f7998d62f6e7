#!/bin/sh
# Compares tp_shell with recorded answers when they are at hand: conformance.sh SOURCE_DIR TP_SHELL GLOB
# conformance-known.txt lists "TRACE QUERY" of what is known to differ, with the reason, `*` for any text; any other
# difference fails.
set -eu
shared=${MERIDIAN_SHARED:-$1/../shared}
known=$(dirname "$0")/conformance-known.txt
if [ ! -x "$shared/conformance/run" ]; then
    echo "skipped: no recorded answers in $shared/conformance (MERIDIAN_SHARED names another place)"
    exit 77
fi
out=$(mktemp)
trap 'rm -f "$out" "$out.failed" "$out.known"' EXIT
"$shared/conformance/run" "$2" --only "$3" -j 2 >"$out" 2>&1 || true
tail -n 1 "$out" | grep -q ' passed, ' || { cat "$out"; exit 1; }
sed -n 's/^FAIL \([^ ]*\) \([^:]*\):.*/\1 \2/p' "$out" | sort >"$out.failed"
sed 's/ *#.*//; /^$/d; s/\./\\./g; s/\*/.*/g' "$known" >"$out.known"
tail -n 1 "$out"
new=$(grep -vxEf "$out.known" "$out.failed" || true)
if [ -n "$new" ]; then
    echo "not known to differ:"
    echo "$new" | while read -r trace query; do
        grep "^FAIL $trace $query:" "$out"
    done
    exit 1
fi
