#!/bin/sh
# Replays what the Perfetto UI sends in recorded sessions, and compares our answers with Perfetto's: ui.sh SOURCE_DIR TP_SHELL
# ui-known.txt lists the answers (session and number) that are known to differ, with the reason; any other one fails.
set -eu
shared=${MERIDIAN_SHARED:-$1/../shared}
known=$(dirname "$0")/ui-known.txt
if [ ! -x "$shared/ui/compare" ]; then
    echo "skipped: no recorded answers in $shared/ui (MERIDIAN_SHARED names another place)"
    exit 77
fi
out=$(mktemp)
trap 'rm -f "$out" "$out.failed" "$out.known"' EXIT
status=0

# replay SESSION TRACE
replay() {
    "$shared/ui/compare" "$tp_shell" "$shared/conformance/traces/$2.pftrace" "$shared/ui/$1.request.bin.gz" \
        "$shared/ui/$1.response.bin.gz" >"$out" 2>&1 || true
    tail -n 1 "$out" | grep -q ' passed, ' || { cat "$out"; exit 1; }
    sed -n 's/^FAIL \([0-9]*\) .*/\1/p' "$out" | sort >"$out.failed"
    sed -n "s/ *#.*//; s/^$1 //p" "$known" | sort >"$out.known"
    echo "$1: $(tail -n 1 "$out")"
    for n in $(comm -23 "$out.failed" "$out.known"); do
        echo "not known to differ:"
        grep -A 1 "^FAIL $n " "$out"
        status=1
    done
}

tp_shell=$2
replay load linux-sched
replay sched linux-sched
replay flows synth-parser-track_event-flow_events_proto_v2
replay heapprof synth-parser-profiling-heap_profile_intervals_legacy
exit $status
