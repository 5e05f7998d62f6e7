#!/bin/bash
# Two kernels, two separate recordings: each guest records itself, with packet headers, and the packets that they
# exchanged bring both onto one clock. A relay measures the same clocks beside it, for comparison only.
#
#   two_recordings.sh TRACEBOX TP_SHELL CACHE_DIR
set -u
here=$(cd "$(dirname "$0")" && pwd)
tracebox=$1 tp_shell=$2 cache=$3
. "$here/guest/guest.sh"

guest_need || exit $?
guest_image "$cache" || { echo "skipped: the guest's kernel package could not be fetched"; exit 77; }
work=$(mktemp -d "$cache/recordings.XXXXXX")
cleanup() {
	guest_stop "$cache" hostA
	guest_stop "$cache" hostB
	[ -n "${KEEP:-}" ] || rm -rf "$work"
}
trap cleanup EXIT
fail() {
	echo "FAILED: $*"
	for log in "$cache"/hostA.out/job.log "$cache"/hostB.out/job.log "$work"/*.log; do
		[ -s "$log" ] && { echo "--- $log"; tail -n 20 "$log"; }
	done
	exit 1
}

# Both: a network of two, a service and its probes, a recording of its own.
common='
record() {
	tracebox perfetto --txt -c /config -o /out/own.pftrace
}
cat > /config <<E3
buffers { size_kb: 32768 }
data_sources { config { name: "linux.ftrace" ftrace_config {
  ftrace_events: "sched/sched_switch" packet_headers: true
} } }
data_sources { config { name: "linux.system_info" } }
duration_ms: 8000
E3
ip addr flush dev eth0
'

# A: a second service, of its own, hears B's relay and writes down how it compares clocks.
cat >"$work/hostA.sh" <<E2
$common
hostname hostA
ip addr add 10.9.0.1/24 dev eth0
tracebox traced & sleep 1
tracebox traced_probes &
export PERFETTO_CONSUMER_SOCK_NAME=/tmp/relayed.sock
PERFETTO_PRODUCER_SOCK_NAME=0.0.0.0:20001 tracebox traced --enable-relay-endpoint &
nc -l -p 7000 -e cat > /dev/null &
for i in \$(seq 100); do tracebox perfetto --query 2>/dev/null | grep -q linux.process_stats && break; sleep 0.2; done
cat > /relay <<E3
buffers { size_kb: 4096 }
trace_all_machines: true
data_sources { config { name: "linux.process_stats" } }
duration_ms: 9000
E3
tracebox perfetto --txt -c /relay -o /out/relay.pftrace &
unset PERFETTO_CONSUMER_SOCK_NAME
record
sleep 2
E2

cat >"$work/hostB.sh" <<E2
$common
hostname hostB
ip addr add 10.9.0.2/24 dev eth0
tracebox traced & sleep 1
tracebox traced_probes &
# what the relay brings to A is another socket's business
PERFETTO_PRODUCER_SOCK_NAME=/tmp/relay.sock PERFETTO_RELAY_SOCK_NAME=10.9.0.1:20001 tracebox traced_relay & sleep 1
PERFETTO_PRODUCER_SOCK_NAME=/tmp/relay.sock tracebox traced_probes &
(sleep 2; for i in \$(seq 120); do echo "line \$i"; sleep 0.1; done) | nc 10.9.0.1 7000 > /dev/null &
sleep 2
record
sleep 3
E2

port=$((20000 + $$ % 10000))
net() { echo "-netdev socket,id=n,$1=127.0.0.1:$port -device virtio-net-pci,netdev=n,mac=52:54:00:09:00:0$2"; }
GUEST_NET=$(net listen 1) guest_start "$cache" hostA "$work/hostA.sh" "$tracebox"
sleep 0.5
GUEST_NET=$(net connect 2) guest_start "$cache" hostB "$work/hostB.sh" "$tracebox"
for host in hostA hostB; do
	guest_wait "$cache" $host 90 >"$work/$host.wait.log" || fail "the job of $host"
	guest_file "$cache" $host own.pftrace && cp "$cache/$host.out/own.pftrace" "$work/$host.pftrace" || fail "$host recorded nothing"
done
guest_file "$cache" hostA relay.pftrace && cp "$cache/hostA.out/relay.pftrace" "$work/" || fail "no recording of the relay"

# Each recording holds one machine, knows of no relay, and was stopped and started by itself.
ask() { "$tp_shell" query "$@" 2>>"$work/tp_shell.log" | tail -n +2 | tr -d '"'; }
for host in hostA hostB; do
	[ "$(ask "$work/$host.pftrace" "SELECT (SELECT count(*) FROM machine) || (SELECT count(*) FROM clock_sync)")" = 10 ] || fail "$host has been relayed"
	n=$(ask "$work/$host.pftrace" "SELECT count(DISTINCT name) FROM ftrace_event WHERE name IN ('packet_sent', 'packet_received')")
	[ "$n" = 2 ] || fail "no packet headers in $host: $(ask "$work/$host.pftrace" "SELECT name, value FROM stats WHERE value != 0")"
done

"$tp_shell" sync "$work/hostA.pftrace" "$work/hostB.pftrace" --plot "$work/sync.svg" 2>>"$work/tp_shell.log" | tee "$work/sync.txt"
grep -q 'quality *accurate (exact)' "$work/sync.txt" || fail "not synchronised"
grep -q 'inverted .* 0 after' "$work/sync.txt" || fail "messages are inverted"

# What the packets say of B's clock, and what the relay's comparisons say, at one moment.
at=$(ask "$work/relay.pftrace" "SELECT (min(start_ts) + max(end_ts)) / 2 FROM clock_sync")
offset="(to_machine_time($at, machine.id, 'BOOTTIME') - $at) || ' ' || clock_error_ns($at, machine.id)"
read -r packets packets_bound <<<"$(ask "$work/hostA.pftrace" "$work/hostB.pftrace" "SELECT $offset FROM machine WHERE name = 'hostB'")"
read -r relay relay_bound <<<"$(ask "$work/relay.pftrace" "SELECT $offset FROM machine WHERE id = 1")"
difference=$((packets - relay))
echo "clock of B: by packets $packets ns (+-$packets_bound), by the relay $relay ns (+-$relay_bound); they differ by $difference ns"
case "$packets_bound$relay_bound" in *[!0-9]* | "") fail "no bound" ;; esac
[ "${difference#-}" -le $((packets_bound + relay_bound)) ] || fail "the two measurements contradict each other"

# One file of both, whose clocks agree as closely.
"$tp_shell" sync "$work/hostA.pftrace" "$work/hostB.pftrace" -o "$work/merged.pftrace" >/dev/null 2>>"$work/tp_shell.log" || fail "merging"
read -r merged merged_bound <<<"$(ask "$work/merged.pftrace" "SELECT $offset FROM machine WHERE id = 1")"
difference=$((packets - merged))
echo "in the merged file $merged ns (+-$merged_bound)"
[ "${difference#-}" -le $((packets_bound + merged_bound)) ] || fail "the merged file says otherwise"
for sql in "SELECT count(*) FROM sched" "SELECT count(*) FROM ftrace_event" "SELECT count(*) FROM machine"; do
	apart=$(ask "$work/hostA.pftrace" "$work/hostB.pftrace" "$sql") together=$(ask "$work/merged.pftrace" "$sql")
	[ "$apart" = "$together" ] || fail "$sql: $apart apart, $together merged"
done
echo "two recordings, one clock: passed"
