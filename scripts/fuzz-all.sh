#!/bin/sh
# Runs each fuzz target for some minutes, one after the other, at the lowest priority, and prints a table:
#
#     scripts/fuzz-all.sh BUILD MINUTES [TARGET…]
#
# Corpora grow in BUILD/corpus (seeded from test/fuzz/corpus) and are minimised before each run. Findings are in
# BUILD/findings; the exit status is 1 when there are any. BUILD/campaign.tsv gets a line for each run: the target, its executions,
# CPU seconds, findings, the date. Minutes in the table are minutes of CPU: on a busy machine they are fewer than MINUTES.
set -eu
build=$1 minutes=$2
shift 2
here=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$build/corpus" "$build/findings"
[ $# -gt 0 ] || set -- $(sed -n 's/^mrd_fuzz(\([a-z_]*\) .*/\1/p' "$here/test/fuzz/CMakeLists.txt")

# Names of tables, columns, functions, stats and keywords, as a dictionary.
sed -n 's/^ *[A-Z_]*("\{0,1\}\([a-z_][a-z_0-9]*\)"\{0,1\}[,)].*/"\1"/p' "$here"/src/storage/*.def "$here"/src/sql/frontend/*.def |
    sort -u >"$build/words.dict"
sed -n 's/.*\.name = "\([a-z_0-9]*\)".*/"\1"/p' "$here"/src/sql/functions/*.c "$here"/src/sql/operators/*.c |
    sort -u >>"$build/words.dict"
sed -n 's/^WORD(\([A-Z_]*\),.*/"\1"/p' "$here/src/sql/frontend/keywords.def" | sort -u >>"$build/words.dict"

# Seconds of CPU of all children so far, in $cpu (`times` must be called by this shell itself).
count_cpu() {
    times >"$build/times"
    cpu=$(awk 'NR == 2 {for (i = 1; i <= 2; i++) {split($i, t, "[ms]"); sum += t[1] * 60 + t[2]}} END {printf "%.0f", sum}' "$build/times")
}

failed=0
printf '| target | executions | CPU minutes | findings | date |\n|---|---|---|---|---|\n'
for target; do
    program=$build/fuzz_$target corpus=$build/corpus/$target log=$build/findings/$target.log
    seeds=$here/test/fuzz/corpus/$target
    [ -x "$program" ] || { printf '| %s | not built | | | |\n' "$target"; continue; }
    mkdir -p "$corpus.next" "$corpus"
    nice -n 19 "$program" -merge=1 -timeout=20 "$corpus.next" "$corpus" "$seeds" >"$log" 2>&1 || true
    rm -rf "$corpus" && mv "$corpus.next" "$corpus"
    count_cpu
    cpu_before=$cpu
    before=$(find "$build/findings" -name "$target-*" | wc -l)
    nice -n 19 "$program" -max_total_time=$((minutes * 60)) -max_len=4096 -timeout=20 -rss_limit_mb=3000 -fork=1 -ignore_crashes=1 \
        -ignore_timeouts=1 -ignore_ooms=1 -dict="$build/words.dict" -artifact_prefix="$build/findings/$target-" "$corpus" >>"$log" 2>&1 || true
    runs=$(sed -n 's/^#\([0-9]*\): cov.*/\1/p' "$log" | tail -1)
    found=$(($(find "$build/findings" -name "$target-*" | wc -l) - before))
    [ "$found" -eq 0 ] || failed=1
    count_cpu
    cpu=$((cpu - cpu_before))
    printf '%s\t%s\t%s\t%s\t%s\n' "$target" "${runs:-0}" "$cpu" "$found" "$(date +%F)" >>"$build/campaign.tsv"
    printf '| %s | %s | %s | %s | %s |\n' "$target" "${runs:-0}" "$(echo "$cpu" | awk '{printf "%.1f", $1 / 60}')" "$found" "$(date +%F)"
done
exit $failed
