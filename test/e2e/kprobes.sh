#!/bin/bash
# Kprobes, the function graph and the top instance of tracefs, in a guest: the kernel that runs the tests may have none of
# them to spare.
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
	for f in tracing_on trace_clock set_event current_tracer buffer_percent kprobe_events tracing_cpumask \
		set_ftrace_filter set_graph_function set_ftrace_pid max_graph_depth; do
		echo "$f: $(cat $f 2>/dev/null)"
	done
}
echo 300 > buffer_size_kb; echo global > trace_clock; echo sched:sched_waking > set_event; echo 0 > tracing_on
state > /out/before; cat buffer_size_kb >> /out/before
until_true() { for i in $(seq 600); do "$@" && return; sleep 0.1; done; echo "not within a minute: $*"; }
offers() { tracebox perfetto --query 2>/dev/null | grep -q linux.process_stats; }
# All of its probes are there, and its events on.
probed() { grep -q do_sys_openat2 kprobe_events && grep -q 1 tracing_on && grep -q 1 events/sched/sched_switch/enable; }
tracebox traced &
tracebox traced_probes &
until_true offers
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
duration_ms: 40000
E3
# A signal ends the recordings; should one be lost, their 40 s do.
tracebox perfetto --txt -c /config -o /out/trace.pftrace & recording=$!
until_true probed
for i in 1 2 3 4 5 6 7 8 9; do cat /config > /dev/null; done
sleep 0.5
kill -INT $recording; wait $recording
state > /out/after; cat buffer_size_kb >> /out/after
cat > /graph <<'E3'
buffers { size_kb: 16384 }
data_sources { config { name: "linux.ftrace" ftrace_config {
  enable_function_graph: true function_filters: "vfs_read" function_filters: "vfs_open" function_filters: "do_filp_open"
  function_graph_roots: "do_filp_open" function_graph_max_depth: 4
  symbolize_ksyms: true
} } }
duration_ms: 40000
E3
graphed() { grep -q function_graph current_tracer && grep -q 1 tracing_on; }
tracebox perfetto --txt -c /graph -o /out/graph.pftrace & recording=$!
until_true graphed
for i in 1 2 3 4 5; do cat /config > /dev/null; done
sleep 0.5
kill -INT $recording; wait $recording
state > /out/after-graph; cat buffer_size_kb >> /out/after-graph
sed -i 's/"vfs_read"/"no_such_function_here"/; s/40000/1500/' /graph
tracebox perfetto --txt -c /graph -o /out/nograph.pftrace
# killed in the middle: what is left behind is found at the next start
tracebox perfetto --txt -c /config -o /out/killed.pftrace &
until_true probed
kill -9 %2
state > /out/dirty
tracebox traced_probes --reset-ftrace; echo "reset $?"
state > /out/reset
kill %1
E2

guest_start "$cache" kprobes "$work/guest.sh" "$tracebox"
guest_wait "$cache" kprobes 240 >"$work/guest.log" || fail "the guest's job"
for f in job.log before after after-graph dirty reset trace.pftrace graph.pftrace nograph.pftrace; do
	guest_file "$cache" kprobes $f && cp "$cache/kprobes.out/$f" "$work/"
done

cmp "$work/before" "$work/after" || { diff "$work/before" "$work/after"; fail "tracefs is not as it was"; }
cmp "$work/before" "$work/after-graph" || { diff "$work/before" "$work/after-graph"; fail "the tracer left something"; }
grep -q perfetto_kprobes "$work/dirty" || fail "no kprobes were there when the probes were killed: $(cat "$work/dirty")"
grep -q perfetto_kprobes "$work/reset" && fail "--reset-ftrace left kprobes"
grep -q '^tracing_on: 0' "$work/reset" || fail "--reset-ftrace left tracing on"

trace=trace
ask() { "$tp_shell" query "$work/$trace.pftrace" "$1" 2>>"$work/tp_shell.log" | tail -n +2 | tr -d '"'; }
for probe in vfs_read do_sys_openat2; do
	n=$(ask "select count(*) from ftrace_event where '$probe' in (name, extract_arg(arg_set_id, 'name'))")
	echo "$probe: $n events"
	[ "${n:-0}" -ge 9 ] || fail "no events of $probe: $(ask "select name, count(*) from ftrace_event group by name")"
done
hits=$(ask "select value from stats where name = 'ftrace_kprobe_hits_delta'")
[ "${hits:-0}" -ge 18 ] || fail "kprobe hits: $hits"
[ "$(ask "select value from stats where name = 'ftrace_setup_errors'")" != 0 ] || fail "the probe of no function was not told"
[ "$(ask "select count(*) from sched")" != 0 ] || fail "no slices"

trace=graph
for f in do_filp_open vfs_open; do
	n=$(ask "select count(*) from slice where name = '$f' and dur > 0")
	echo "function graph: $n calls of $f"
	[ "${n:-0}" -ge 5 ] || fail "no calls of $f: $(ask "select name, count(*) from slice group by name")"
done
# on each cpu the recording may begin within a call, whose beginning is not there then
n=$(ask "select count(*) from slice where name = 'vfs_open' and depth = 0")
[ "${n:-9}" -le 2 ] || fail "$n calls of vfs_open outside do_filp_open"
# every cat reads; what the kernel was in when the tracer came may still show
n=$(ask "select count(*) from slice where name = 'vfs_read' and depth = 0")
[ "${n:-9}" -le 2 ] || fail "$n calls of vfs_read, which is not below do_filp_open"
trace=nograph
ask "select extract_arg(arg_set_id, 'message') from _trace_import_logs" | grep -q enable_function_graph || fail "a filter without a function was not told"
[ "$(ask "select count(*) from slice")" = 0 ] || fail "the whole kernel was traced"
echo "kprobes: ok"
