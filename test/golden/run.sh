#!/bin/sh
# Runs one golden test: run.sh [--update] TP_SHELL CASE.sql; the answer must equal CASE.out.
# The first line of the SQL names the recording in test/data: "-- trace: linux-sched.pftrace".
set -eu
update=0
if [ "$1" = --update ]; then
    update=1
    shift
fi
shell=$1
sql=$2
out=${sql%.sql}.out
trace=$(sed -n '1s/^-- trace: *//p' "$sql")
[ -n "$trace" ] || { echo "$sql: the first line must be '-- trace: FILE'" >&2; exit 1; }
data=$(dirname "$sql")/../data
err=$(mktemp)
actual=$(mktemp)
trap 'rm -f "$err" "$actual"' EXIT
if ! "$shell" query -f "$sql" "$data/$trace" >"$actual" 2>"$err" </dev/null; then
    cat "$err" >&2
    exit 1
fi
if [ $update = 1 ]; then
    cp "$actual" "$out"
else
    diff -u "$out" "$actual"
fi
