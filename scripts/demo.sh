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
    "select id as machine, name, sysname, release, num_cpus from machine"

ask "One clock for all: how far off can the times of a machine be?" \
    "select m.name as machine, printf('%.1f', min(min_rtt_ns) / 1e3) as quickest_round_trip_us,
     printf('%.1f', (select max(clock_error_ns(s.ts, m.id)) from sched s join cpu using (ucpu)
     where cpu.machine_id = m.id) / 1e3) as off_by_us_at_most
     from clock_sync c join machine m on m.id = c.machine_id group by m.id"

ask "The client called the server: where did the time go?" \
    "with mark as (select cast(substr(s.name, 6) as int) as call, substr(s.name, 6 + instr(substr(s.name, 6), ' ')) as what,
     s.ts from slice s where s.name glob 'call * *'),
     step as (select max(ts) filter (where what = 'asked') as asked, max(ts) filter (where what = 'heard') as heard,
     max(ts) filter (where what = 'replied') as replied, max(ts) filter (where what = 'answered') as answered
     from mark group by call having count(*) = 4)
     select count(*) as calls, printf('%.3f', avg(heard - asked) / 1e6) as there_ms,
     printf('%.3f', avg(replied - heard) / 1e6) as server_ms, printf('%.3f', avg(answered - replied) / 1e6) as back_ms,
     sum(heard < asked or answered < replied) as effects_before_their_cause from step"

ask "Which threads waited longest for a cpu?" \
    "select m.name as machine, t.tid, t.name as thread, count(*) as waits,
     printf('%.3f', sum(s.dur) / 1e6) as total_ms, printf('%.3f', max(s.dur) / 1e6) as longest_ms
     from thread_state s join thread t using (utid) join machine m on m.id = t.machine_id
     where s.state in ('R', 'R+') and s.dur > 0 group by s.utid order by sum(s.dur) desc limit 8"

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
