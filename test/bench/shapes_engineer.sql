-- Statements of a performance engineer over schedules, states, slices, counters, args, events and samples, for bench_shapes.

-- shape: wake chains three deep
select t0.name, t1.name, t2.name, count(*) n from thread_state a join thread_state b on b.id = a.waker_id join thread_state c on c.utid = b.utid and c.id < b.id and c.state = 'R' and c.ts + c.dur = b.ts join thread t0 on t0.utid = a.utid join thread t1 on t1.utid = b.utid left join thread t2 on t2.utid = c.waker_utid where a.state = 'R' group by 1,2,3 order by n desc,1,2,3 limit 30;
-- shape: latency table with flags
create perfetto table lat as select r.id, r.utid, r.dur as wait, r.waker_utid, s.cpu, s.dur as ran, case when r.dur > 1000000 then 'slow' when r.dur > 100000 then 'mid' else 'fast' end as class from thread_state r join thread_state s on s.utid = r.utid and s.ts = r.ts + r.dur where r.state = 'R' and s.state = 'Running';
select class, cpu, count(*), avg(wait), max(ran), percentile(wait, 95) from lat group by class, cpu order by class, cpu;
-- shape: later use of a made table
create perfetto table busy as select utid, cpu, sum(dur) d, count(*) n from sched where utid != 0 group by utid, cpu;
select t.name, b.cpu, b.d, b.d * 100.0 / (select sum(x.d) from busy x where x.utid = b.utid) as share from busy b join thread t using (utid) where b.n > 10 order by b.d desc limit 50;
-- shape: per thread top state by subquery
select t.utid, t.name, (select state from thread_state x where x.utid = t.utid group by state order by sum(dur) desc limit 1) top from thread t order by t.utid;
-- shape: count of preemptions then who
select t.name, p.name, count(*) n, sum(iif(s.end_state in ('R','R+'), 1, 0)) preempted, round(100.0 * sum(iif(s.end_state in ('R','R+'),1,0)) / count(*), 2) pct from sched s join thread t using (utid) left join process p using (upid) group by t.utid having n > 20 order by pct desc, n desc, t.name limit 40;
-- shape: not exists a later run
select count(*) from thread_state a where a.state = 'D' and not exists (select 1 from sched s where s.utid = a.utid and s.ts >= a.ts + a.dur and s.ts < a.ts + a.dur + 1000000);
-- shape: exists other cpu at same time
select s.cpu, count(*) from sched s where s.utid != 0 and exists (select 1 from sched o where o.cpu != s.cpu and o.utid != 0 and o.ts <= s.ts and o.ts + o.dur > s.ts) group by s.cpu;
-- shape: max not exists
select count(*) from sched a where not exists (select 1 from sched b where b.cpu = a.cpu and b.dur > a.dur and b.ts between a.ts - 1000000 and a.ts);
-- shape: hottest ms per cpu
with ms as (select cpu, ts / 1000000 m, sum(dur) d, count(*) n from sched where utid > 0 group by 1, 2), mx as (select cpu, max(n) n from ms group by cpu) select ms.cpu, ms.m, ms.n, ms.d from ms join mx on mx.cpu = ms.cpu and mx.n = ms.n order by 1, 2;
-- shape: cte in scalar subqueries
with w as (select utid, dur from thread_state where state = 'R' and dur > 0) select (select count(*) from w) n, (select avg(dur) from w) a, (select max(dur) from w) m, (select percentile(dur, 99) from w) p;
-- shape: cte in scalar subqueries joined
with w as (select utid, sum(dur) d from sched where dur > 0 group by utid) select t.name, w.d, w.d * 100.0 / (select sum(d) from w) pct, (select count(*) from w x where x.d > w.d) as rank_above from w join thread t using (utid) order by w.d desc, t.utid limit 25;
-- shape: share of cpu by process with total
with total as (select sum(dur) d from sched where utid != 0) select p.name, p.pid, sum(s.dur) as d, 100.0 * sum(s.dur) / total.d as pct from sched s join thread t using (utid) join process p using (upid), total group by p.upid order by d desc limit 20;
-- shape: windows rows frame sliding
select utid, max(avg5) from (select utid, avg(dur) over (partition by utid order by ts rows between 4 preceding and current row) avg5 from thread_state where state = 'Running') group by utid order by 2 desc, 1 limit 20;
-- shape: windows range frame
select cpu, max(n), avg(n) from (select cpu, count(*) over (partition by cpu order by ts range between 1000000 preceding and current row) n from sched where utid != 0) group by cpu;
-- shape: sum in trailing window by range
select utid, max(d) from (select utid, sum(dur) over (partition by utid order by ts range between 10000000 preceding and current row) d from sched where utid != 0) group by utid order by 2 desc limit 10;
-- shape: gaps and islands
select utid, count(*) bursts, max(e - b) from (select utid, g, min(ts) b, max(ts + dur) e from (select utid, ts, dur, sum(n) over (partition by utid order by ts rows unbounded preceding) g from (select utid, ts, dur, case when ts - lag(ts + dur) over (partition by utid order by ts) < 2000000 then 0 else 1 end n from sched where utid != 0)) group by utid, g) group by utid order by 2 desc, 1 limit 20;
-- shape: lag lead combos
select s.state, s.prev, s.next, count(*), avg(dur) from (select state, dur, lag(state) over w prev, lead(state) over w next from thread_state window w as (partition by utid order by ts)) s group by 1, 2, 3 order by 4 desc, 1, 2, 3 limit 50;
-- shape: first run of each thread
select t.name, f.ts, f.cpu from thread t join (select utid, min(ts) ts, cpu from sched group by utid) f using (utid) order by f.ts, t.utid;
-- shape: last event before sched
select name, count(*) from (select s.id, (select e.name from ftrace_event e where e.cpu = s.cpu and e.ts < s.ts order by e.ts desc limit 1) name from sched s where s.dur > 1000000) group by name order by 2 desc, 1;
-- shape: events during slice counts
select e.name, count(*) from sched s join ftrace_event e on e.cpu = s.cpu and e.ts >= s.ts and e.ts < s.ts + s.dur where s.dur > 500000 and s.utid != 0 group by e.name order by 2 desc, 1;
-- shape: left join of wakeups null
select count(*) from thread_state a left join thread_state w on w.id = a.waker_id where a.state = 'R' and (w.id is null or w.utid = a.utid);
-- shape: union all of ctes in order
with a as (select ts, 'run' k, utid from sched where dur > 2000000), b as (select ts, 'wait' k, utid from thread_state where state = 'R' and dur > 2000000), c as (select ts, 'io' k, utid from thread_state where state = 'D' and dur > 100000) select x.ts, x.k, t.name from (select * from a union all select * from b union all select * from c) x left join thread t using (utid) order by x.ts, x.k, x.utid limit 500;
-- shape: stack of intervals by plus one minus one
select max(depth), avg(depth) from (select ts, sum(d) over (order by ts, d rows unbounded preceding) depth from (select ts, 1 d from thread_state where state = 'R' and dur > 0 union all select ts + dur, -1 from thread_state where state = 'R' and dur > 0));
-- shape: run queue depth per cpu with time weight
with ev as (select ts, 1 d from thread_state where state = 'R' and dur > 0 union all select ts + dur, -1 from thread_state where state = 'R' and dur > 0), q as (select ts, sum(d) over (order by ts) n, lead(ts) over (order by ts) - ts as len from ev) select n, sum(len) from q where len > 0 group by n order by n;
-- shape: printf label per row
select printf('%s/%d', t.name, s.cpu) l, s.ts, s.dur from sched s join thread t using (utid) where s.dur > 20000 order by s.dur desc, s.ts limit 5000;
-- shape: text of each row counted
select count(*), sum(length(l)) from (select t.name || ' on cpu ' || s.cpu || ' for ' || s.dur l from sched s join thread t using (utid));
-- shape: substr per row
select substr(e.name, 1, 5) p, count(*), min(ts), max(ts) from ftrace_event e group by 1 order by 2 desc, 1;
-- shape: strftime buckets
select strftime('%M:%S', ts / 1e9, 'unixepoch') s, count(*), sum(dur) from sched where utid != 0 group by s order by s;
-- shape: like filters several
select t.name, count(*) from thread_state s join thread t using (utid) where (t.name like 'k%' or t.name like '%/0') and t.name not like '%swap%' and s.state glob 'R*' group by 1 order by 2 desc, 1;
-- shape: in of in
select count(*) from sched where utid in (select utid from thread where upid in (select upid from process where name like '%s%'));
-- shape: in group having
select count(*), sum(dur) from thread_state where utid in (select utid from sched group by utid having count(distinct cpu) > 1 and sum(dur) > 1000000) and state = 'R';
-- shape: in two columns
select count(*) from sched where (utid, cpu) in (select utid, cpu from thread_state where state = 'Running' group by utid, cpu having count(*) > 100);
-- shape: self join by range overlap
select a.cpu, b.cpu, count(*), sum(min(a.ts + a.dur, b.ts + b.dur) - max(a.ts, b.ts)) from sched a join sched b on a.cpu < b.cpu and a.ts < b.ts + b.dur and b.ts < a.ts + a.dur where a.utid != 0 and b.utid != 0 and a.dur > 0 and b.dur > 0 and a.dur > 200000 group by 1, 2;
-- shape: recursive waker chain
with recursive c(id, depth) as (select id, 0 from (select id from thread_state where state = 'R' and dur > 500000 order by id limit 200) union all select s.waker_id, c.depth + 1 from c join thread_state s on s.id = c.id where s.waker_id is not null and c.depth < 10) select depth, count(*) from c group by depth;
-- shape: recursive previous states
with recursive c(id, utid, endts, n) as (select id, utid, ts, 0 from thread_state where dur > 5000000 and state = 'S' union all select s.id, s.utid, s.ts, c.n + 1 from c join thread_state s on s.utid = c.utid and s.ts + s.dur = c.endts where c.n < 3) select n, count(*) from c group by n;
-- shape: series buckets left join
with recursive i(n) as (select 0 union all select n + 1 from i where n < 199) select n, count(s.id), coalesce(sum(s.dur), 0) from i left join sched s on s.ts >= trace_start() + n * 10000000 and s.ts < trace_start() + (n + 1) * 10000000 and s.utid != 0 group by n;
-- shape: extract_arg in group and having
select extract_arg(arg_set_id, 'next_comm') c, extract_arg(arg_set_id, 'prev_state') st, count(*) n from ftrace_event where name = 'sched_switch' group by 1, 2 having n > 3 order by n desc, 1, 2 limit 40;
-- shape: args of an event by key pivot
select max(case when a.key = 'prev_comm' then a.string_value end) pc, max(case when a.key = 'next_comm' then a.string_value end) nc, count(*) from ftrace_event e join args a using (arg_set_id) where e.name = 'sched_switch' group by e.id limit 1000;
-- shape: args joined filter on value
select e.ts, e.cpu, a.int_value from ftrace_event e join args a on a.arg_set_id = e.arg_set_id where e.name = 'sched_waking' and a.key = 'target_cpu' and a.int_value != e.cpu order by e.ts limit 2000;
-- shape: distinct args keys by event
select distinct e.name, a.key from ftrace_event e join args a using (arg_set_id) order by 1, 2;
-- shape: event intervals by lead per thread
select name, nxt, count(*), avg(d) from (select name, lead(name) over (partition by utid order by ts, id) nxt, lead(ts) over (partition by utid order by ts, id) - ts d from ftrace_event where utid is not null) where nxt is not null group by 1, 2 order by 3 desc, 1, 2 limit 40;
-- shape: counter join sched at time
select cpu, count(*), avg(v) from (select s.cpu, (select c.value from counter c join cpu_counter_track t on t.id = c.track_id where t.cpu = s.cpu and c.ts <= s.ts order by c.ts desc limit 1) v from sched s where s.dur > 1000000) group by cpu;
-- shape: counter spans by lead
select t.name, count(*), sum(d), sum(value * d) / sum(d) from (select track_id, value, lead(ts) over (partition by track_id order by ts) - ts d from counter) c join track t on t.id = c.track_id where d > 0 group by t.name order by 2 desc, 1;
-- shape: span join of counter views
create perfetto view cva as select ts, lead(ts, 1, trace_end()) over (partition by track_id order by ts) - ts dur, value v1 from counter where track_id = (select track_id from counter group by track_id order by count(*) desc, track_id limit 1);
create perfetto view cvb as select ts, dur, utid from sched where cpu = 0;
create virtual table cvs using span_join(cva, cvb);
select utid, avg(v1), sum(dur) from cvs group by utid order by 3 desc, 1 limit 10;
-- shape: span join of sched and state
create perfetto table sja as select ts, dur, cpu, utid from sched where dur > 0;
create perfetto table sjb as select ts, dur, cpu, utid wutid from thread_state where state = 'Running' and dur > 0 and cpu is not null;
create virtual table sjx using span_join(sja partitioned cpu, sjb partitioned cpu);
select t.name, sum(x.dur) from sjx x join thread t on t.utid = x.wutid where x.utid != 0 group by t.name order by 2 desc, 1 limit 20;
-- shape: interval intersect of states
include perfetto module intervals.intersect;
select ii.ts, ii.dur, ii.id_0, ii.id_1 from _interval_intersect!(((select id, ts, dur from sched where cpu = 0 and utid != 0 and dur > 0), (select id, ts, dur from sched where cpu = 1 and utid != 0 and dur > 0)), ()) ii order by ts limit 1000;
-- shape: interval intersect small
include perfetto module intervals.intersect;
select count(*), sum(dur) from _interval_intersect!(((select id, ts, dur, utid from thread_state where state = 'R' and dur > 3000000), (select id, ts, dur, utid from thread_state where dur > 3000000)), (utid));
-- shape: interval self intersect
include perfetto module intervals.overlap;
select count(*), sum(dur) from interval_self_intersect!((select id, ts, dur from sched where cpu < 2 and dur > 100000));
-- shape: intervals to counts over time
include perfetto module intervals.overlap;
select value, sum(d) from (select value, lead(ts) over (order by ts) - ts d from intervals_overlap_count!((select ts, dur from sched where utid != 0 and dur > 0), ts, dur)) group by value order by value;
-- shape: create intervals of events
include perfetto module intervals.create_intervals;
select count(*) from _interval_create!((select ts from ftrace_event where name = 'sched_waking'), (select ts from ftrace_event where name = 'sched_switch'));
-- shape: module sched latency
include perfetto module sched.latency;
select t.name, count(*), avg(l.latency_dur), max(l.latency_dur) from sched_latency_for_running_interval l join thread t using (utid) group by 1 order by 2 desc, 1 limit 20;
-- shape: module runnable
include perfetto module sched.runnable;
select count(*), count(prev_runnable_id) from sched_previous_runnable_on_thread;
-- shape: module cpu utilization
include perfetto module linux.cpu.utilization.process;
select * from cpu_cycles_per_process limit 20;
-- shape: module thread activity
include perfetto module sched.with_context;
select thread_name, cpu, sum(dur) from sched_with_thread_process where process_name is not null group by 1, 2 order by 3 desc, 1, 2 limit 30;
-- shape: thread_slice_ancestor lookups
select s.id, (select count(*) from ancestor_slice(s.id)) n, (select a.name from ancestor_slice(s.id) a order by a.depth limit 1) root from slice s where s.depth > 0 order by s.id limit 2000;
-- shape: slice children sums by lookup
select name, sum(self) from (select s.name, s.dur - coalesce((select sum(c.dur) from slice c where c.parent_id = s.id), 0) self from slice s) group by name order by 2 desc, 1 limit 20;
-- shape: slice with sched overlap share
select s.name, sum(s.dur), sum((select sum(min(c.ts + c.dur, s.ts + s.dur) - max(c.ts, s.ts)) from sched c where c.utid = tt.utid and c.ts < s.ts + s.dur and c.ts + c.dur > s.ts)) oncpu from slice s join thread_track tt on tt.id = s.track_id where s.dur > 0 group by s.name order by 2 desc, 1 limit 20;
-- shape: slices in thread states
select s.name, ts.state, count(*), sum(min(ts.ts + ts.dur, s.ts + s.dur) - max(ts.ts, s.ts)) d from slice s join thread_track tt on tt.id = s.track_id join thread_state ts on ts.utid = tt.utid and ts.ts < s.ts + s.dur and ts.ts + ts.dur > s.ts where s.dur > 0 group by 1, 2 order by 4 desc, 1, 2 limit 50;
-- shape: slice durations percentiles having
select name, count(*) n, percentile(dur, 50) p50, percentile(dur, 90) p90, percentile(dur, 99) p99, max(dur) mx from slice where dur > 0 group by name having n >= 10 order by p99 desc, name;
-- shape: slice args several
select s.name, extract_arg(s.arg_set_id, 'args.nr') nr, extract_arg(s.arg_set_id, 'debug.nr') nr2, count(*), avg(s.dur) from slice s group by 1, 2, 3 order by 4 desc, 1, 2, 3 limit 50;
-- shape: args display value join
select s.name, a.key, a.display_value, count(*) from slice s join args a using (arg_set_id) group by 1, 2, 3 order by 4 desc, 1, 2, 3 limit 50;
-- shape: slice depth tree by name
select p.name parent, s.name, s.depth, count(*), sum(s.dur), 100.0 * sum(s.dur) / sum(p.dur) from slice s join slice p on p.id = s.parent_id where s.dur >= 0 and p.dur > 0 group by 1, 2, 3 order by 5 desc, 1, 2, 3 limit 50;
-- shape: flows between threads
select t1.name, t2.name, count(*), avg(b.ts - a.ts - a.dur) from flow f join slice a on a.id = f.slice_out join slice b on b.id = f.slice_in join thread_track tt1 on tt1.id = a.track_id join thread_track tt2 on tt2.id = b.track_id join thread t1 on t1.utid = tt1.utid join thread t2 on t2.utid = tt2.utid group by 1, 2 order by 3 desc, 1, 2;
-- shape: previous slice of same name
select name, count(*), avg(gap), percentile(gap, 90) from (select name, ts - lag(ts) over (partition by track_id, name order by ts) gap from slice) where gap is not null group by name order by 2 desc, 1;
-- shape: slices thread process like
select p.name, t.name, s.name, count(*) n, sum(s.dur) / 1e6 ms from slice s join thread_track tt on tt.id = s.track_id join thread t using (utid) left join process p using (upid) where s.name like '%read%' or s.name like '%write%' or s.name glob '*poll*' group by 1, 2, 3 order by ms desc limit 50;
-- shape: top slices per thread by row_number
select tname, name, d from (select t.name tname, s.name, sum(s.dur) d, row_number() over (partition by t.utid order by sum(s.dur) desc) rn from slice s join thread_track tt on tt.id = s.track_id join thread t using (utid) group by t.utid, s.name) where rn <= 3 order by tname, d desc, name;
-- shape: distinct threads on several cpus
select t.name, count(distinct s.cpu) c, count(distinct s.end_state) e, min(s.ts), max(s.ts + s.dur) from sched s join thread t using (utid) group by t.utid having c > 1 order by c desc, t.name limit 30;
-- shape: cpu of waker same or not
select case when w.cpu = s.cpu then 'same' when w.cpu is null then 'none' else 'other' end k, count(*), avg(r.dur) from thread_state r left join thread_state w on w.id = r.waker_id left join thread_state s on s.utid = r.utid and s.ts = r.ts + r.dur where r.state = 'R' group by k order by k;
-- shape: case histogram with order
select b, n, round(100.0 * n / sum(n) over (), 3) pct, sum(n) over (order by b) cum from (select case when dur < 1000 then 0 when dur < 10000 then 1 when dur < 100000 then 2 when dur < 1000000 then 3 when dur < 10000000 then 4 else 5 end b, count(*) n from thread_state where state = 'R' group by 1) order by b;
-- shape: threads without sched left anti
select t.name from thread t left join sched s on s.utid = t.utid where s.utid is null order by t.utid;
-- shape: irq time within sched
select count(*), sum(min(i.ts + i.dur, s.ts + s.dur) - max(i.ts, s.ts)) from slice i join sched s on s.ts < i.ts + i.dur and s.ts + s.dur > i.ts where i.depth = 0 and i.dur > 0 and i.id < 20000;
-- shape: distinct pairs of wakers
select count(*) from (select distinct waker_utid, utid from thread_state where waker_utid is not null);
-- shape: mutual wakers
with w as (select waker_utid a, utid b, count(*) n from thread_state where waker_utid is not null group by 1, 2) select x.a, x.b, x.n, y.n from w x join w y on y.a = x.b and y.b = x.a where x.a < x.b order by x.n + y.n desc, x.a, x.b limit 20;
-- shape: group_concat of ordered window
select utid, group_concat(state, '>') from (select utid, state from thread_state where utid < 40 order by utid, ts) group by utid;
-- shape: rows with window ranks by join
select cpu, utid, n, rk from (select cpu, utid, n, dense_rank() over (partition by cpu order by n desc) rk from (select cpu, utid, count(*) n from sched group by cpu, utid)) where rk <= 5 order by cpu, rk, utid;
-- shape: thread lifetime vs running
select t.name, t.start_ts, sum(s.dur) r, count(*) c, max(s.ts + s.dur) - min(s.ts) life, 1.0 * sum(s.dur) / (max(s.ts + s.dur) - min(s.ts)) share from thread t join sched s using (utid) group by t.utid order by share desc, t.utid limit 30;
-- shape: nearest slice join
select count(*), avg(d) from (select e.ts - (select max(s.ts) from sched s where s.cpu = e.cpu and s.ts <= e.ts) d from ftrace_event e where e.name = 'sched_waking');
-- shape: bare columns of max group join
select t.name, m.d, m.ts, m.cpu from (select utid, max(dur) d, ts, cpu from sched group by utid) m join thread t using (utid) where m.d > 100000 order by m.d desc, m.utid;
-- shape: perf samples by symbol
select spf.name, count(*) from perf_sample s join stack_profile_callsite c on c.id = s.callsite_id join stack_profile_frame spf on spf.id = c.frame_id group by 1 order by 2 desc, 1 limit 30;
-- shape: perf samples by thread and cpu
select t.name, s.cpu, count(*) n, count(distinct s.callsite_id) from perf_sample s join thread t using (utid) group by 1, 2 order by n desc, 1, 2 limit 30;
-- shape: perf samples during sched
select t.name, count(*) from perf_sample s join sched c on c.cpu = s.cpu and c.ts <= s.ts and c.ts + c.dur > s.ts join thread t on t.utid = c.utid group by 1 order by 2 desc, 1 limit 30;
-- shape: not in with or
select state, count(*) from thread_state where utid not in (select utid from thread where name is null or name like 'swapper%') and (cpu is null or cpu in (0, 2)) group by state order by 1;
-- shape: nested case and coalesce text keys
select coalesce(p.name, t.name, 'tid ' || t.tid) who, case s.end_state when 'S' then 'sleep' when 'D' then 'io' when 'R' then 'preempt' else ifnull(s.end_state, 'none') end why, count(*), sum(s.dur) from sched s join thread t using (utid) left join process p using (upid) group by 1, 2 order by 4 desc, 1, 2 limit 40;
-- shape: running sum crosses limit
select cpu, min(ts) from (select cpu, ts, sum(dur) over (partition by cpu order by ts) acc, sum(dur) over (partition by cpu) whole from sched where utid != 0) where acc * 2 >= whole group by cpu;
-- shape: except of sets of pairs
select count(*) from (select utid, cpu from sched where utid != 0 except select utid, cpu from thread_state where state = 'R' and cpu is not null);
-- shape: compare halves of trace
with h as (select utid, sum(iif(ts < mid, dur, 0)) a, sum(iif(ts >= mid, dur, 0)) b from sched, (select (min(ts) + max(ts)) / 2 mid from sched) group by utid) select t.name, a, b, b * 1.0 / a r from h join thread t using (utid) where a > 0 and b > 0 order by abs(b - a) desc, t.utid limit 30;
-- shape: full rows with lookups
select s.ts, s.dur, (select name from thread t where t.utid = s.utid) tn, (select p.name from thread t join process p using (upid) where t.utid = s.utid) pn, (select count(*) from thread_state x where x.utid = s.utid and x.state = 'D') ds from sched s where s.dur > 3000000 order by s.ts;
-- shape: json of groups
select json_object('utid', utid, 'n', count(*), 'd', sum(dur)) from sched group by utid order by utid;
-- shape: runnable behind whom
select t.name, r.name, count(*), sum(min(w.ts + w.dur, s.ts + s.dur) - max(w.ts, s.ts)) d from thread_state w join sched s on s.cpu = w.cpu and s.ts < w.ts + w.dur and s.ts + s.dur > w.ts join thread t on t.utid = w.utid join thread r on r.utid = s.utid where w.state = 'R' and w.dur > 200000 group by 1, 2 order by d desc, 1, 2 limit 30;
-- shape: idle before each long run
select count(*), avg((select s.ts - max(p.ts + p.dur) from sched p where p.cpu = s.cpu and p.ts < s.ts and p.utid != 0)) from sched s where s.dur > 1000000 and s.utid != 0;
-- shape: blocked time share by correlated sums
select t.name, (select sum(dur) from thread_state x where x.utid = t.utid and x.state = 'S') * 100.0 / (select sum(dur) from thread_state x where x.utid = t.utid) pct from thread t where t.upid is not null order by 2 desc, t.utid;
-- shape: count of later shorter runs
select count(*) from sched s where s.dur > 2000000 and (select count(*) from sched n where n.utid = s.utid and n.ts > s.ts and n.dur < s.dur) > 100;
-- shape: exists with or
select state, count(*) from thread_state w where w.dur > 1000000 and exists (select 1 from thread t where t.utid = w.utid and (t.name like 'k%' or t.tid % 2 = w.id % 2)) group by state order by 1;
-- shape: not exists with arithmetic
select count(*) from thread_state a where a.state = 'R' and not exists (select 1 from thread_state b where b.utid = a.utid and b.ts + b.dur = a.ts and b.state = 'S');
-- shape: correlated concat of names
select p.pid, (select group_concat(t.name || ':' || p.pid) from thread t where t.upid = p.upid) l from process p order by p.pid;
-- shape: correlated having
select t.utid, (select cpu from sched s where s.utid = t.utid group by cpu having count(*) > 5 order by sum(dur) desc, cpu limit 1) c from thread t order by 1;
-- shape: correlated percentile
select t.name, (select percentile(dur, 95) from thread_state s where s.utid = t.utid and s.state = 'R') p95 from thread t order by p95 desc, t.utid limit 30;
-- shape: argmax by window and join
select t.name, x.cpu, x.d from (select utid, cpu, sum(dur) d, row_number() over (partition by utid order by sum(dur) desc, cpu) rn from sched group by utid, cpu) x join thread t using (utid) where x.rn = 1 and x.d > 1000000 order by x.d desc limit 50;
-- shape: cumulative distribution
select q, min(dur) from (select dur, ntile(20) over (order by dur, id) q from thread_state where state = 'R') group by q order by q;
-- shape: distinct count over windows
select cpu, count(*) from (select cpu, utid != lag(utid, 1, -1) over (partition by cpu order by ts) sw from sched) where sw group by cpu order by cpu;
-- shape: switch rate per second
select sec, max(n), avg(n) from (select cpu, ts / 100000000 sec, count(*) n from sched group by 1, 2) group by sec order by sec;
-- shape: event rate by second and name with having
select name, ts / 1000000000 s, count(*) n from ftrace_event group by 1, 2 having n > 50 order by n desc, 1, 2 limit 100;
-- shape: left join group with coalesce
select t.name, coalesce(r.n, 0) runs, coalesce(w.n, 0) waits, coalesce(w.d, 0) * 1.0 / nullif(r.d, 0) ratio from thread t left join (select utid, count(*) n, sum(dur) d from sched group by utid) r using (utid) left join (select utid, count(*) n, sum(dur) d from thread_state where state = 'R' group by utid) w using (utid) order by ratio desc, t.utid limit 40;
-- shape: full outer join of sides
select coalesce(a.utid, b.utid) u, a.n, b.n from (select utid, count(*) n from sched where cpu = 0 group by utid) a full join (select utid, count(*) n from sched where cpu = 1 group by utid) b on a.utid = b.utid order by 1;
-- shape: pairs within a window
select count(*) from sched a join sched b on b.cpu = a.cpu and b.utid = a.utid and b.ts > a.ts and b.ts < a.ts + 2000000 where a.utid != 0;
-- shape: next wakeup after a switch
select count(*), avg(d) from (select s.id, (select min(w.ts) from thread_state w where w.utid = s.utid and w.state = 'R' and w.ts >= s.ts + s.dur) - s.ts - s.dur d from sched s where s.end_state = 'S' and s.dur > 100000);
-- shape: case with queries
select case when dur > (select avg(dur) from sched) then 'above' when dur > (select percentile(dur, 25) from sched) then 'mid' else 'low' end k, count(*) from sched group by 1 order by 1;
-- shape: rollup by union all
select 'cpu' k, cast(cpu as text) v, sum(dur) d from sched group by cpu union all select 'state', end_state, sum(dur) from sched group by end_state union all select 'all', null, sum(dur) from sched order by 1, 2;
-- shape: text keys made of numbers
select 'cpu' || cpu || '/' || (case when utid = 0 then 'idle' else 'busy' end) k, count(*), sum(dur) from sched group by k order by k;
-- shape: join on expression key
select count(*) from sched s join thread_state r on r.utid = s.utid and r.ts + r.dur = s.ts where r.state = 'R';
-- shape: irq slices on cpu of sched
select s.cpu, count(*), avg(d) from (select i.ts, i.dur d, i.track_id from slice i where i.depth = 0 and i.dur > 0) x join sched s on s.ts <= x.ts and s.ts + s.dur > x.ts where s.utid != 0 group by s.cpu;
-- shape: slices nested time by kin
select s.name, count(*), sum((select sum(d.dur) from descendant_slice(s.id) d where d.depth = s.depth + 1)) from slice s where s.depth = 0 group by 1 order by 2 desc, 1 limit 20;
-- shape: parent chain texts
select s.id, (select group_concat(a.name, '/') from ancestor_slice(s.id) a) p from slice s where s.depth > 1 order by s.id limit 1000;
-- shape: span join then correlated
create perfetto table cs_a as select ts, dur, utid from thread_state where state = 'Running' and dur > 0;
create perfetto table cs_b as select s.ts, s.dur, tt.utid, s.id from slice s join thread_track tt on tt.id = s.track_id where s.dur > 0 and s.depth = 0;
create virtual table cs using span_join(cs_a partitioned utid, cs_b partitioned utid);
select count(*), sum(dur), count(distinct id) from cs;
-- shape: intersect with having
include perfetto module intervals.intersect;
select utid, count(*), sum(dur) from _interval_intersect!(((select id, ts, dur, utid from sched where dur > 0), (select id, ts, dur, utid from thread_state where dur > 0 and state = 'Running')), (utid)) group by utid having count(*) > 10 order by 3 desc, 1 limit 20;
-- shape: flatten overlapping
include perfetto module intervals.overlap;
select count(*), max(value) from intervals_overlap_count!((select ts, dur from slice where dur > 0), ts, dur);
-- shape: slice counts by thread and minute
select tt.utid, s.ts / 1000000000 g, count(*), max(s.dur), (select name from thread t where t.utid = tt.utid) n from slice s join thread_track tt on tt.id = s.track_id group by 1, 2 order by 3 desc, 1, 2 limit 50;
-- shape: counter deltas joined to thread
select t.name, count(*), sum(d) from (select c.track_id, c.value - lag(c.value) over (partition by c.track_id order by c.ts) d from counter c) x join track t on t.id = x.track_id where d > 0 group by 1 order by 2 desc, 1;
-- shape: counters at slice starts
select s.name, avg((select c.value from counter c where c.track_id = (select min(id) from counter_track) and c.ts <= s.ts order by c.ts desc limit 1)) v, count(*) from slice s group by 1 order by 3 desc, 1 limit 20;
-- shape: longest chain of slices
with recursive d(id, root, depth) as (select id, id, 0 from slice where parent_id is null union all select s.id, d.root, d.depth + 1 from d join slice s on s.parent_id = d.id) select root, max(depth), count(*) from d group by root order by 2 desc, 3 desc, 1 limit 10;
-- shape: args of slices by several keys
select a.key, count(*), count(distinct s.name), min(a.int_value), max(a.int_value) from slice s join args a on a.arg_set_id = s.arg_set_id group by a.key order by 2 desc, 1;
-- shape: extract_arg compared
select count(*) from slice s where extract_arg(s.arg_set_id, 'args.nr') > 10 and s.dur > 1000;
-- shape: sched in windows of slices with lag
select count(*), avg(gap) from (select c.utid, c.ts - lag(c.ts + c.dur) over (partition by c.utid order by c.ts) gap from sched c where c.utid in (select utid from thread where upid is not null)) where gap between 1 and 10000000;
-- shape: events before the switch of a thread
select e.name, count(*) from (select utid, cpu, ts from sched where dur > 3000000) s join ftrace_event e on e.cpu = s.cpu and e.ts between s.ts - 20000 and s.ts group by 1 order by 2 desc, 1;
-- shape: two ctes joined by range
with l as (select utid, ts, dur from thread_state where state = 'D' and dur > 1000), r as (select ts, dur, utid from sched where dur > 1000000 and utid != 0) select count(*), sum(l.dur) from l join r on l.ts between r.ts and r.ts + r.dur;
-- shape: ordered list with lookups in order
select s.id, s.dur from sched s where s.utid != 0 order by (select t.tid from thread t where t.utid = s.utid), s.ts limit 100;
-- shape: sum of case by subquery
select sum(case when exists (select 1 from thread t join process p using (upid) where t.utid = s.utid and p.name like '%s%') then s.dur else 0 end) d, sum(s.dur) from sched s;
-- shape: max of two lookups
select count(*), sum(max((select min(tid) from thread t where t.utid = s.utid), coalesce((select p.pid from thread t join process p using (upid) where t.utid = s.utid), 0))) from sched s where s.dur > 10000;
