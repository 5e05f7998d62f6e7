#!/bin/bash
# Calls between two kernels: each packet of a call is found on the other machine, in two recordings made apart and in one
# that a relay brought together, and the critical path of a call goes through both machines.
#
#   cross_calls.sh TRACEBOX TP_SHELL CALLS CACHE_DIR
set -u
here=$(cd "$(dirname "$0")" && pwd)
tracebox=$1 tp_shell=$2 calls=$3 cache=$4
. "$here/guest/guest.sh"

guest_need || exit $?
guest_image "$cache" || { echo "skipped: the guest's kernel package could not be fetched"; exit 77; }
work=$(mktemp -d "$cache/calls.XXXXXX")
cleanup() {
	guest_stop "$cache" callee
	guest_stop "$cache" caller
	[ -n "${KEEP:-}" ] || rm -rf "$work"
}
trap cleanup EXIT
fail() {
	echo "FAILED: $*"
	for log in "$cache"/callee.out/job.log "$cache"/caller.out/job.log "$work"/*.log; do
		[ -s "$log" ] && { echo "--- $log"; tail -n 20 "$log"; }
	done
	exit 1
}

# Both: a network of two, and what is recorded.
common='
config() {
	echo "buffers { size_kb: 65536 } trace_all_machines: true duration_ms: 9000"
	echo "data_sources { config { name: \"linux.ftrace\" ftrace_config { ftrace_events: \"sched/sched_switch\" ftrace_events: \"sched/sched_waking\""
	echo "  ftrace_events: \"net/net_dev_xmit\" ftrace_events: \"ftrace/print\" packet_headers: true } } }"
	echo "data_sources { config { name: \"linux.system_info\" } } data_sources { config { name: \"linux.process_stats\" } }"
}
config > /config
until_recorders() { # COUNT: of machines
	for i in $(seq 300); do tracebox perfetto --query 2>/dev/null | grep -c linux.ftrace | grep -q "^$1" && break; sleep 0.2; done
}
ip addr flush dev eth0
'

# The callee answers. It records itself, then both machines through a relay.
cat >"$work/callee.sh" <<E2
$common
hostname callee
ip addr add 10.9.0.1/24 dev eth0
calls server 7000 &
# both record themselves at the same time, however late one of them has started
for i in \$(seq 300); do ping -c 1 -W 1 10.9.0.2 >/dev/null 2>&1 && break; sleep 0.2; done
tracebox traced & service=\$!
sleep 1
tracebox traced_probes & probes=\$!
until_recorders 1
tracebox perfetto --txt -c /config -o /out/own.pftrace
kill \$probes \$service; wait \$probes \$service
export PERFETTO_PRODUCER_SOCK_NAME=0.0.0.0:20001
tracebox traced --enable-relay-endpoint &
sleep 1
PERFETTO_PRODUCER_SOCK_NAME=127.0.0.1:20001 tracebox traced_probes &
until_recorders 2
sleep 1
tracebox perfetto --txt -c /config -o /out/relayed.pftrace
E2

cat >"$work/caller.sh" <<E2
$common
hostname caller
ip addr add 10.9.0.2/24 dev eth0
for i in \$(seq 100); do nc 10.9.0.1 7000 </dev/null >/dev/null 2>&1 && break; sleep 0.2; done
(while true; do calls client 10.9.0.1 7000 3600; sleep 0.5; done) 2>/dev/null &
tracebox traced & service=\$!
sleep 1
tracebox traced_probes & probes=\$!
until_recorders 1
tracebox perfetto --txt -c /config -o /out/own.pftrace
kill \$probes \$service; wait \$probes \$service
PERFETTO_RELAY_SOCK_NAME=10.9.0.1:20001 tracebox traced_relay &
tracebox traced_probes &
# until the other machine has gone, and the recording with it
for i in \$(seq 60); do sleep 1; ping -c 1 -W 1 10.9.0.1 >/dev/null 2>&1 || break; done
E2

port=$((20000 + $$ % 10000))
net() { echo "-netdev socket,id=n,$1=127.0.0.1:$port -device virtio-net-pci,netdev=n,mac=52:54:00:09:00:0$2"; }
GUEST_NET=$(net listen 1) guest_start "$cache" callee "$work/callee.sh" "$tracebox" "$calls"
sleep 0.5
GUEST_NET=$(net connect 2) guest_start "$cache" caller "$work/caller.sh" "$tracebox" "$calls"
for host in callee caller; do
	guest_wait "$cache" $host 150 >"$work/$host.wait.log" || fail "the job of $host"
	guest_file "$cache" $host own.pftrace && cp "$cache/$host.out/own.pftrace" "$work/$host.pftrace" || fail "$host recorded nothing"
done
guest_file "$cache" callee relayed.pftrace && cp "$cache/callee.out/relayed.pftrace" "$work/" || fail "no recording of the relay"
[ -n "${KEEP:-}" ] && echo "kept in $work"

python3 "$here/call_truth.py" "$tp_shell" "$work/callee.pftrace" "$work/caller.pftrace" || fail "the recordings made apart"
python3 "$here/call_truth.py" "$tp_shell" "$work/relayed.pftrace" || fail "the recording of the relay"
echo "calls across machines: passed"
