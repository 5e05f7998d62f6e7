#!/bin/bash
# Two real kernels: the guide "Multi-machine recording" word for word. A guest boots under emulation, its producers are
# relayed to this machine over TCP, one recording holds both, and the clocks agree with an independent measurement. A
# second guest, whose clock drifts, joins before the recording; no answer to a call comes before its question.
#
#   two_kernels.sh TRACEBOX TP_SHELL CLOCKPAGE CALLS CACHE_DIR
set -u
here=$(cd "$(dirname "$0")" && pwd)
tracebox=$1 tp_shell=$2 clockpage=$3 calls=$4 cache=$5
. "$here/guest/guest.sh"

guest_need || exit $?
[ "$(id -u)" = 0 ] || { echo "skipped: needs root (ftrace, namespaces)"; exit 77; }
if [ -z "${IN_NAMESPACE:-}" ]; then
	unshare -n -m true 2>/dev/null || { echo "skipped: no namespaces here"; exit 77; }
	guest_image "$cache" || { echo "skipped: the guest's kernel package could not be fetched"; exit 77; }
	# A loopback of our own, and mounts: the guide's port cannot meet that of another test.
	IN_NAMESPACE=1 exec unshare -n -m "$0" "$@"
fi
ip link set lo up
work=$(mktemp -d "$cache/run.XXXXXX")
export PERFETTO_CONSUMER_SOCK_NAME=$work/consumer.sock
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing || { echo "skipped: no tracefs"; exit 77; }

fail() {
	echo "FAILED: $*"
	for log in "$work"/*.log "$cache"/{guest,drifting}.log; do
		[ -s "$log" ] && { echo "--- $log"; tail -n 15 "$log"; }
	done
	exit 1
}
cleanup() {
	guest_stop "$cache" guest
	guest_stop "$cache" drifting
	kill $(jobs -p) 2>/dev/null
	wait 2>/dev/null
	[ -n "${KEEP:-}" ] || rm -rf "$work" "$pages"
}
pages=$(mktemp -d /dev/shm/clockpage.XXXXXX)
trap cleanup EXIT

cat >"$work/guest.sh" <<'E2'
PERFETTO_RELAY_SOCK_NAME=10.0.2.2:20001 tracebox traced_relay &
sleep 0.5
tracebox traced_probes &
calls client 10.0.2.2 20003 14 &
clockpage guest 14
kill %1 %2
wait
E2
cat >"$work/drifting.sh" <<'E2'
adjtimex -q -f 13107200 >/dev/null # 200 ppm
PERFETTO_RELAY_SOCK_NAME=10.0.2.2:20001 PERFETTO_MACHINE_NAME=drifting tracebox traced_relay &
clockpage guest 16
kill %1
wait
E2

"$clockpage" host "$pages"/{guest,drifting} &

# Step 1 and 2: the service, and the probes of the host.
PERFETTO_PRODUCER_SOCK_NAME=0.0.0.0:20001 "$tracebox" traced --enable-relay-endpoint 2>"$work/traced.log" &
for i in $(seq 50); do ss -ltn 2>/dev/null | grep -q :20001 && break; sleep 0.1; done
PERFETTO_PRODUCER_SOCK_NAME=127.0.0.1:20001 "$tracebox" traced_probes 2>"$work/probes.log" &

# Step 3 and 4: the relay and the probes of the guest.
page() { echo "-object memory-backend-file,id=page,share=on,mem-path=$pages/$1,size=4M -device ivshmem-plain,memdev=page"; }
"$calls" server 20003 &
GUEST_QEMU=$(page drifting) GUEST_CPUS=1 guest_start "$cache" drifting "$work/drifting.sh" "$tracebox" "$clockpage"
GUEST_QEMU=$(page guest) guest_start "$cache" guest "$work/guest.sh" "$tracebox" "$clockpage" "$calls"
for i in $(seq 300); do
	"$tracebox" perfetto --query 2>/dev/null | grep -c linux.ftrace | grep -q '^[2-9]' && break
	sleep 0.1
done
[ "$i" -lt 300 ] || fail "the guest's producers did not appear"

# Step 5: record.
cat >"$work/config.pbtx" <<'E2'
buffers {
  size_kb: 32768
  fill_policy: RING_BUFFER
}
trace_all_machines: true
data_sources {
  config {
    name: "linux.ftrace"
    ftrace_config {
      ftrace_events: "sched/sched_switch"
      ftrace_events: "ftrace/print"
    }
  }
}
duration_ms: 5000
E2
"$tracebox" perfetto --txt -c "$work/config.pbtx" -o "$work/trace.pftrace" 2>"$work/perfetto.log" || fail "recording"

# Step 6: the machines are in it. (The drifting one has a relay and no probes: a row, and no events.)
ask() { "$tp_shell" query "$work/trace.pftrace" "$1" 2>>"$work/tp_shell.log" | tail -n +2 | tr -d '"'; }
ask "SELECT id, raw_id, sysname, release, arch, num_cpus FROM machine;" | tee "$work/machines.csv"
[ "$(wc -l <"$work/machines.csv")" = 3 ] || fail "machine has not three rows"
[ "$(head -n 1 "$work/machines.csv" | cut -d, -f1)" = 0 ] || fail "the host is not machine 0"
ask "SELECT cpu.machine_id, COUNT(*) AS num_events FROM ftrace_event JOIN cpu USING (ucpu) GROUP BY cpu.machine_id;" | tee "$work/events.csv"
[ "$(awk -F, '$2 > 0' "$work/events.csv" | wc -l)" = 2 ] || fail "not both machines have events"

for guest in guest drifting; do
	guest_wait "$cache" $guest 60 || fail "the job of $guest"
	guest_file "$cache" $guest job.log && cp "$cache/$guest.out/job.log" "$work/$guest-job.log"
done
grep -q '^Started traced_relay, listening on /tmp/perfetto-producer, forwarding to 10.0.2.2:20001$' "$work/guest-job.log" ||
	fail "the relay did not say that it started"

# The clocks: what the page says, what the trace says, and by how much it claims to be off at most.
python3 "$here/clock_truth.py" "$tp_shell" "$work/trace.pftrace" "$pages"/{guest,drifting} || fail "the clocks"

# Cause and effect: asked (guest), heard, replied (host), answered (guest).
ask "
CREATE PERFETTO TABLE calls AS SELECT a.ts AS asked, h.ts AS heard, r.ts AS replied, b.ts AS answered
	FROM slice a JOIN slice h ON h.name = replace(a.name, 'asked', 'heard') JOIN slice r ON r.name = replace(a.name, 'asked', 'replied')
	JOIN slice b ON b.name = replace(a.name, 'asked', 'answered') WHERE a.name GLOB 'call * asked';
SELECT count(*), sum(NOT (asked < heard AND heard < replied AND replied < answered)), min(heard - asked), min(answered - replied), min(answered - asked) FROM calls;" |
	tee "$work/calls.csv"
IFS=, read -r count inverted there back both <"$work/calls.csv"
echo "$count calls from the guest: $inverted with an effect before its cause; quickest way there $there ns, back $back ns, call $both ns"
[ "$count" -gt 100 ] && [ "$inverted" = 0 ] || fail "cause and effect"
echo "two kernels, one trace: passed"
