#!/bin/bash
# Kprobes, and the top instance of tracefs, in a guest: the kernel that runs the tests may have neither to spare.
#
#   kprobes.sh TRACEBOX TP_SHELL CACHE_DIR
set -u
here=$(cd "$(dirname "$0")" && pwd)
tracebox=$1 tp_shell=$2 cache=$3
. "$here/guest/guest.sh"

guest_need || exit $?
guest_image "$cache" || { echo "skipped: the guest's kernel package could not be fetched"; exit 77; }
work=$(mktemp -d "$cache/kprobes.XXXXXX")
cleanup() {
	guest_stop "$cache" kprobes
	rm -rf "$work"
}
trap cleanup EXIT
fail() {
	echo "FAILED: $*"
	cat "$work"/*.log 2>/dev/null | tail -n 60
	exit 1
}

# What a recording changes in the top instance, as a text that two moments can be compared by.
cat >"$work/guest.sh" <<'E2'
cd /sys/kernel/tracing
state() {
	for f in tracing_on trace_clock set_event current_tracer buffer_percent kprobe_events tracing_cpumask; do
		echo "$f: $(cat $f 2>/dev/null)"
	done
}
echo 300 > buffer_size_kb; echo global > trace_clock; echo sched:sched_waking > set_event; echo 0 > tracing_on
state > /out/before; cat buffer_size_kb >> /out/before
tracebox traced & sleep 1
tracebox traced_probes & sleep 1
cat > /config <<'E3'
buffers { size_kb: 16384 }
data_sources { config { name: "linux.ftrace" ftrace_config {
  ftrace_events: "sched/sched_switch"
  kprobe_events { probe: "vfs_read" type: KPROBE_TYPE_BOTH }
  kprobe_events { probe: "do_sys_openat2" type: KPROBE_TYPE_KPROBE }
  kprobe_events { probe: "no_such_function_here" type: KPROBE_TYPE_KPROBE }
  symbolize_ksyms: true
} } }
data_sources { config { name: "linux.process_stats" } }
duration_ms: 3000
E3
(sleep 1; for i in 1 2 3 4 5 6 7 8 9; do cat /config > /dev/null; done) &
tracebox perfetto --txt -c /config -o /out/trace.pftrace
state > /out/after; cat buffer_size_kb >> /out/after
# killed in the middle: what is left behind is found at the next start
tracebox perfetto --txt -c /config -o /out/killed.pftrace &
sleep 1.5
kill -9 %2
state > /out/dirty
sleep 0.5
tracebox traced_probes --reset-ftrace; echo "reset $?"
state > /out/reset
kill %1
E2

guest_start "$cache" kprobes "$work/guest.sh" "$tracebox"
guest_wait "$cache" kprobes 90 >"$work/guest.log" || fail "the guest's job"
for f in job.log before after dirty reset trace.pftrace; do
	guest_file "$cache" kprobes $f && cp "$cache/kprobes.out/$f" "$work/"
done

cmp "$work/before" "$work/after" || { diff "$work/before" "$work/after"; fail "tracefs is not as it was"; }
grep -q perfetto_kprobes "$work/dirty" || fail "the kill came too early or too late"
grep -q perfetto_kprobes "$work/reset" && fail "--reset-ftrace left kprobes"
grep -q '^tracing_on: 0' "$work/reset" || fail "--reset-ftrace left tracing on"

ask() { "$tp_shell" query "$work/trace.pftrace" "$1" 2>>"$work/tp_shell.log" | tail -n +2 | tr -d '"'; }
for probe in vfs_read do_sys_openat2; do
	n=$(ask "select count(*) from ftrace_event where '$probe' in (name, extract_arg(arg_set_id, 'name'))")
	echo "$probe: $n events"
	[ "${n:-0}" -ge 9 ] || fail "no events of $probe: $(ask "select name, count(*) from ftrace_event group by name")"
done
hits=$(ask "select value from stats where name = 'ftrace_kprobe_hits_delta'")
[ "${hits:-0}" -ge 18 ] || fail "kprobe hits: $hits"
[ "$(ask "select value from stats where name = 'ftrace_setup_errors'")" != 0 ] || fail "the probe of no function was not told"
[ "$(ask "select count(*) from sched")" != 0 ] || fail "no slices"
echo "kprobes: ok"
