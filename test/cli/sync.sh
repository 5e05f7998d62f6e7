#!/bin/sh
# `tp_shell sync` on recordings with known answers: Trace Compass' own pair of traces, and two guests whose clocks were
# measured independently. Skipped (77) where the recordings are not at hand.
#
#   sync.sh TP_SHELL SOURCE_DIR
set -eu
tp_shell=$1
data=${MERIDIAN_SHARED:-$2/../shared}/data
[ -d "$data/synctraces" ] || { echo "skipped: no recordings at $data"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
ask() { "$tp_shell" query "$1" "$2" 2>/dev/null | tail -n +2 | tr -d '"'; }
near() { awk -v a="$1" -v b="$2" -v d="$3" 'BEGIN { x = a - b; if (x < 0) x = -x; exit !(x <= d) }'; }
fail() { echo "FAILED: $*"; exit 1; }

# Trace Compass' numbers, by its method: 46 matches, slope, offset.
"$tp_shell" sync --method trace-compass "$data/synctraces" >"$tmp/tc.txt" 2>/dev/null || fail "sync --method trace-compass"
grep -q '46 matched' "$tmp/tc.txt" || fail "not 46 matches"
grep -q 't(VM3) = 0.9999413783703139 \* t(VM1) +79796507913179\.' "$tmp/tc.txt" || fail "not Trace Compass' formula: $(cat "$tmp/tc.txt")"

# The exact method: its bounds contain that map, and no message is inverted.
row=$(ask "$data/synctraces" "select to_ref_slope, to_ref_offset_ns, max_error_ns, x_begin, x_end, inverted_after from clock_sync_pair")
echo "$row" | awk -F, '{ mid = ($4 + $5) / 2
	tc = (mid - 79796507913179.333) / 0.9999413783703139; ours = (mid - $2) / $1; d = tc - ours; if (d < 0) d = -d
	if (d > $3 || $6 != 0) exit 1 }' || fail "Trace Compass' map lies outside our bound: $row"

# Two guests: the true offset (a shared memory page) lies inside the bound; B - A at A's 30 s, and 44.28 s for the second.
for set in ds1-offset ds2-drift; do
	dir=$data/lttng-two-hosts/$set
	"$tp_shell" sync "$dir" --plot "$tmp/$set.svg" >"$tmp/$set.txt" 2>/dev/null || fail "sync $set"
	grep -q '<svg' "$tmp/$set.svg" || fail "no picture of $set"
	grep -q ' 0 after' "$tmp/$set.txt" || fail "$set: messages inverted: $(cat "$tmp/$set.txt")"
	python3 - "$dir" "$(ask "$dir" "select x_begin, x_end, offset_ns, max_error_ns, (select name from machine where id = ref_machine_id) from clock_sync_pair")" <<'P' || fail "$set: the truth lies outside the bound"
import re, sys
d, cells = sys.argv[1], sys.argv[2].split(",")
row, ref = [int(v) for v in cells[:4]], cells[4]
off = {h: int(re.search(rb"offset = (\d+)", open(f"{d}/host{h}/kernel/metadata", "rb").read()).group(1)) for h in "AB"}
mid = row[0] + (row[1] - row[0]) // 2
if ref == "hostB":  # x is B's clock: turn the relation round
    mid, row[2] = mid + row[2], -row[2]
seconds = (mid - off["A"]) / 1e9
true = {"ds1-offset": -8954715365 + (seconds - 30) * 1552.1, "ds2-drift": -12880100689 + (seconds - 30) * 190795.9}[d.split("/")[-1]]
truth = true + off["B"] - off["A"]
error = row[2] - truth
print(f"{d.split('/')[-1]}: error {error:.0f} ns, bound {row[3]} ns")
sys.exit(abs(error) > row[3])
P
done
echo "sync: passed"
