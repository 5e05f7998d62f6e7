#!/bin/sh
# Asks real questions about a recording and prints the answers: demo.sh TP_SHELL TRACE
set -eu
shell=$1
trace=$2

ask() {
    echo
    echo "== $1"
    echo "   $2" | tr -s ' \n' ' ' | fold -s -w 118
    echo
    "$shell" query --format table "$trace" "$2" 2>/dev/null
}

echo "The recording: $trace"
"$shell" query "$trace" "select 1 as nothing" 2>&1 >/dev/null | grep -a 'Trace loaded'

ask "Which machines took part?" \
    "select id as machine, raw_id, sysname, release, arch, num_cpus from machine"

ask "How many kernel events did each of them write?" \
    "select cpu.machine_id as machine, count(*) as events, count(distinct e.name) as kinds,
     printf('%.3f', (max(e.ts) - min(e.ts)) / 1e9) as seconds
     from ftrace_event e join cpu using (ucpu) group by 1 order by 1"

ask "Which threads waited longest for a cpu?" \
    "select coalesce(p.machine_id, t.machine_id) as machine, t.tid, t.name as thread, p.name as process, count(*) as waits,
     printf('%.3f', sum(s.dur) / 1e6) as total_ms, printf('%.3f', max(s.dur) / 1e6) as longest_ms
     from thread_state s join thread t using (utid) left join process p using (upid)
     where s.state in ('R', 'R+') and s.dur > 0 group by s.utid order by sum(s.dur) desc limit 10"

ask "Was anything lost?" \
    "select (select count(*) from stats where severity = 'data_loss' and value > 0) as kinds_of_loss,
     (select count(*) from stats where severity = 'error' and value > 0) as kinds_of_error,
     (select count(*) from stats) as counters_looked_at"

echo
echo "== The same for CI: tp_shell check"
echo
"$shell" check "$trace" 2>/dev/null || true

echo
echo "Now you: $shell $trace"
