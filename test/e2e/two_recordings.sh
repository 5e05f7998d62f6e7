#!/bin/bash
# Two kernels, two recordings made apart: each guest records itself, with packet headers, and the packets that they
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

# A: hears B'"'"'s relay too, and a second session writes down how it compares clocks.
cat >"$work/hostA.sh" <<E2
$common
hostname hostA
ip addr add 10.9.0.1/24 dev eth0
PERFETTO_PRODUCER_SOCK_NAME=0.0.0.0:20001 tracebox traced --enable-relay-endpoint & sleep 1
PERFETTO_PRODUCER_SOCK_NAME=127.0.0.1:20001 tracebox traced_probes &
nc -l -p 7000 -e cat > /dev/null &
for i in \$(seq 100); do tracebox perfetto --query 2>/dev/null | grep -c linux.ftrace | grep -q '^[2-9]' && break; sleep 0.2; done
cat > /relay <<E3
buffers { size_kb: 4096 }
trace_all_machines: true
data_sources { config { name: "linux.process_stats" } }
duration_ms: 9000
E3
tracebox perfetto --txt -c /relay -o /out/relay.pftrace &
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
