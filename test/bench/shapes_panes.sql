-- Statements as panes of the UI and reports ask them, for bench_shapes.

-- shape: cpu share per second and thread
select t.name, (s.ts - (select min(ts) from sched)) / 1000000000 sec, sum(s.dur) * 100.0 / 1e9 pct from sched s join thread t using (utid) where s.utid != 0 group by s.utid, sec having pct > 1 order by sec, pct desc, s.utid;
-- shape: concurrency histogram by windows
with ev as (select ts t, 1 d from sched where utid != 0 union all select ts + dur, -1 from sched where utid != 0), run as (select t, sum(d) over (order by t rows unbounded preceding) n, lead(t) over (order by t) - t dur from ev) select n, sum(dur) from run group by n order by n;
-- shape: wakeup latency by cpu and priority
select s.cpu, s.priority, count(*), avg(r.dur), max(r.dur), percentile(r.dur, 90) from sched s join thread_state r on r.utid = s.utid and r.ts + r.dur = s.ts where r.state in ('R', 'R+') group by 1, 2 order by 1, 2;
-- shape: ratio of running to runnable
select t.name, sum(case when s.state = 'Running' then s.dur else 0 end) * 1.0 / nullif(sum(case when s.state in ('R','R+') then s.dur else 0 end), 0) ratio, count(*) from thread_state s left join thread t using (utid) where s.dur > 0 group by s.utid having count(*) > 50 order by ratio, s.utid limit 40;
-- shape: percentile by group of names
select t.name, count(*), percentile(s.dur, 50), percentile(s.dur, 95), percentile(s.dur, 99.9) from sched s join thread t using (utid) where s.dur > 0 group by t.name order by 5 desc, 1 limit 30;
-- shape: waker chain to process
select wp.name, p.name, count(*), sum(s.dur) from thread_state s join thread t on t.utid = s.utid left join process p on p.upid = t.upid join thread w on w.utid = s.waker_utid left join process wp on wp.upid = w.upid where s.state = 'R' group by 1, 2 order by 4 desc, 1, 2 limit 30;
-- shape: self join by lag on cpu
select a.utid prev, b.utid next, count(*) n from (select id, cpu, utid, row_number() over (partition by cpu order by ts) rn from sched) a join (select cpu, utid, row_number() over (partition by cpu order by ts) rn from sched) b on a.cpu = b.cpu and b.rn = a.rn + 1 group by 1, 2 order by n desc, 1, 2 limit 20;
-- shape: whole table two keys
select ts, dur, utid, cpu from sched order by utid, dur desc;
-- shape: whole table two keys of states
select id, ts, dur, state from thread_state order by state, dur desc, id;
-- shape: top slice per track
select * from (select track_id, name, dur, rank() over (partition by track_id order by dur desc, id) r from slice) where r <= 3 order by track_id, r;
-- shape: exclusive time by window of depth
select name, sum(dur - child) self from (select s.id, s.name, s.dur, coalesce((select sum(c.dur) from slice c where c.parent_id = s.id), 0) child from slice s) group by name order by self desc, name limit 30;
-- shape: descendants of each row counted
select s.name, sum((select count(*) from descendant_slice(s.id))) n from slice s group by 1 order by 2 desc, 1 limit 20;
-- shape: ancestors with a name
select count(*) from slice s where exists (select 1 from ancestor_slice(s.id) a where a.dur > 10 * s.dur);
-- shape: ancestors joined
select a.name, s.name, count(*), sum(s.dur) from slice s join ancestor_slice(s.id) a group by 1, 2 order by 3 desc, 1, 2 limit 40;
-- shape: stack text per row
select p, count(*) from (select (select group_concat(name, ';') from (select a.name from ancestor_slice(s.id) a order by a.depth)) || ';' || s.name p from slice s where s.depth > 0) group by p order by 2 desc, 1 limit 30;
-- shape: printf per row grouped
select printf('%s/%02d', t.name, s.cpu) k, count(*), sum(s.dur) from sched s join thread t using (utid) group by k order by 3 desc, 1 limit 50;
-- shape: format of ms per row
select max(length(format('%.3f ms', dur / 1e6))), count(distinct format('%.1f', dur / 1e6)) from sched;
-- shape: group_concat over correlated rows
select t.utid, (select group_concat(distinct s.cpu) from sched s where s.utid = t.utid) cpus from thread t order by t.utid;
-- shape: group_concat of states in order
select utid, length(group_concat(state, ',')) from (select utid, state from thread_state order by utid, ts) group by utid order by 2 desc, 1 limit 20;
-- shape: exclude current row
select cpu, max(dur - a) from (select cpu, dur, avg(dur) over (partition by cpu order by ts rows between 3 preceding and 3 following exclude current row) a from sched where dur > 0) group by cpu order by cpu;
-- shape: in of in of in
select count(*), sum(dur) from thread_state where utid in (select utid from thread where upid in (select upid from process where pid in (select pid from process where name is not null)));
-- shape: in of in with filter
select s.cpu, count(*) from sched s where s.utid in (select t.utid from thread t where t.upid in (select p.upid from process p where p.name like '%e%')) and s.utid in (select waker_utid from thread_state where waker_utid is not null) group by 1 order by 1;
-- shape: last state before each run
select count(*), sum(x) from (select s.ts - (select max(r.ts) from thread_state r where r.utid = s.utid and r.ts < s.ts) x from sched s);
-- shape: last event before each run with name
select n, count(*) from (select (select e.name from ftrace_event e where e.cpu = s.cpu and e.ts <= s.ts order by e.ts desc, e.id desc limit 1) n from sched s where s.dur > 100000) group by n order by 2 desc, 1;
-- shape: args two keys of an event
select extract_arg(arg_set_id, 'prev_comm') a, extract_arg(arg_set_id, 'next_comm') b, count(*) n from ftrace_event where name = 'sched_switch' group by 1, 2 order by n desc, 1, 2 limit 40;
-- shape: args four keys to a table
create perfetto table sw as select ts, cpu, extract_arg(arg_set_id, 'prev_pid') p, extract_arg(arg_set_id, 'prev_state') st, extract_arg(arg_set_id, 'next_pid') n, extract_arg(arg_set_id, 'next_prio') pr from ftrace_event where name = 'sched_switch';
select st, pr, count(*), count(distinct p) from sw group by 1, 2 order by 3 desc, 1, 2;
-- shape: args joined twice
select a.int_value, b.int_value, count(*) from ftrace_event e join args a on a.arg_set_id = e.arg_set_id and a.key = 'pid' join args b on b.arg_set_id = e.arg_set_id and b.key = 'target_cpu' where e.name = 'sched_waking' group by 1, 2 order by 3 desc, 1, 2 limit 30;
-- shape: args pivot by case
select e.name, count(*), max(v.c), max(v.p) from ftrace_event e join (select arg_set_id, max(case when key = 'comm' then string_value end) c, max(case when key = 'pid' then int_value end) p from args group by arg_set_id) v using (arg_set_id) group by 1 order by 2 desc, 1;
-- shape: args counted by key
select key, count(*), count(distinct arg_set_id) from args group by key order by 2 desc, 1 limit 30;
-- shape: slice args two keys
select extract_arg(arg_set_id, 'debug.size') s, extract_arg(arg_set_id, 'debug.url') u, count(*), avg(dur) from slice where arg_set_id is not null group by 1, 2 order by 3 desc, 1, 2 limit 30;
-- shape: slice by arg of category
select s.category, a.key, count(*), sum(s.dur) from slice s join args a using (arg_set_id) where a.key glob 'debug.*' group by 1, 2 order by 3 desc, 1, 2 limit 50;
-- shape: counters as spans lead
select t.name, sum(v * d) / sum(d) w, max(v) from (select track_id, value v, lead(ts) over (partition by track_id order by ts) - ts d from counter) c join track t on t.id = c.track_id where d > 0 group by t.id order by t.id;
-- shape: counter leading intervals
include perfetto module counters.intervals;
select track_id, count(*), sum(dur), max(value) from counter_leading_intervals!((select id, ts, track_id, value from counter)) group by track_id order by track_id;
-- shape: counter intervals span join sched
include perfetto module counters.intervals;
create perfetto table ci as select ts, dur, track_id, value from counter_leading_intervals!((select id, ts, track_id, value from counter where track_id = (select min(track_id) from counter)));
create perfetto view sv as select ts, dur, utid, cpu from sched where dur > 0;
create virtual table cj using span_join(sv partitioned cpu, ci);
select cpu, count(*), sum(dur * value) from cj group by cpu;
-- shape: span left join of cpu
create perfetto view la as select ts, dur, utid, cpu from sched where utid != 0;
create perfetto view lb as select ts, dur, cpu, state from thread_state where state = 'R' and cpu is not null;
create perfetto table lc as select s.ts, s.dur, s.cpu, s.end_state from sched s where s.dur > 200000;
create virtual table lj using span_left_join(la partitioned cpu, lc partitioned cpu);
select cpu, end_state, count(*), sum(dur) from lj group by 1, 2 order by 1, 2;
-- shape: span outer join
create perfetto table oa as select ts, dur, utid from thread_state where state = 'Running' and dur > 0;
create perfetto table ob as select ts, dur, utid from thread_state where state = 'R' and dur > 0;
create virtual table oj using span_outer_join(oa partitioned utid, ob partitioned utid);
select count(*), sum(dur) from oj;
-- shape: interval intersect with window
include perfetto module intervals.intersect;
select count(*), sum(dur) from _interval_intersect!(((select id, ts, dur, cpu from sched where dur > 0 and utid != 0), (select 0 id, (select min(ts) from sched) + 100000000 ts, 500000000 dur, c.cpu from (select distinct cpu from sched) c)), (cpu));
-- shape: interval intersect single
include perfetto module intervals.intersect;
select count(*), sum(ii_dur) from (select i.dur ii_dur from _interval_intersect_single!((select min(ts) from sched) + 100000000, 50000000, (select id, ts, dur from sched where dur > 0)) i);
-- shape: flat slices
include perfetto module slices.flat_slices;
select name, count(*), sum(dur) from _slice_flattened group by name order by 3 desc, 1 limit 30;
-- shape: slice with cpu time by span join
create perfetto table sl as select s.ts, s.dur, tt.utid, s.name from slice s join thread_track tt on tt.id = s.track_id where s.depth = 0 and s.dur > 0;
create virtual table slj using span_join(sl partitioned utid, sched partitioned utid);
select name, sum(dur), count(*) from slj group by name order by 2 desc, 1 limit 20;
-- shape: thread state breakdown inside slices
select s.name, st.state, count(*), sum(min(s.ts + s.dur, st.ts + st.dur) - max(s.ts, st.ts)) d from slice s join thread_track tt on tt.id = s.track_id join thread_state st on st.utid = tt.utid and st.ts < s.ts + s.dur and st.ts + st.dur > s.ts group by 1, 2 order by d desc, 1, 2 limit 40;
-- shape: json object per row
select length(max(j)), count(*) from (select json_object('ts', ts, 'dur', dur, 'cpu', cpu) j from sched);
-- shape: json extract per row
select json_extract(j, '$.k') k, count(*) from (select json_object('k', cpu, 'd', dur) j from sched) group by 1 order by 1;
-- shape: text compare join
select count(*) from (select distinct name from thread where name is not null) a join (select distinct name from slice) b on a.name < b.name;
-- shape: text less in rows
select count(*) from thread_state s join thread t using (utid) where t.name < s.state;
-- shape: threads created over time
select (start_ts - (select start_ts from trace_bounds)) / 100000000 b, count(*) from thread where start_ts is not null group by 1 order by 1;
-- shape: burst detection by count over range
select utid, max(c) from (select utid, count(*) over (partition by utid order by ts range between 5000000 preceding and current row) c from thread_state where state = 'R') group by utid order by 2 desc, 1 limit 20;
-- shape: max gap between wakeups per thread
select t.name, g from (select utid, max(ts - p) g from (select utid, ts, lag(ts) over (partition by utid order by ts) p from thread_state where state = 'R') where p is not null group by utid) join thread t using (utid) order by g desc, t.utid limit 25;
-- shape: median and mad by thread
with m as (select utid, percentile(dur, 50) m from sched where dur > 0 group by utid) select t.name, m.m, avg(abs(s.dur - m.m)) from sched s join m using (utid) join thread t using (utid) group by s.utid order by 3 desc, s.utid limit 20;
-- shape: z score outliers
with st as (select utid, avg(dur) a, avg(dur * 1.0 * dur) q, count(*) n from sched where dur > 0 group by utid having n > 10) select s.id, s.ts, s.dur, (s.dur - a) / sqrt(q - a * a) z from sched s join st using (utid) where q - a * a > 0 and (s.dur - a) / sqrt(q - a * a) > 6 order by z desc, s.id limit 50;
-- shape: cpu migrations between clusters
select p, c, count(*) from (select cpu c, lag(cpu) over (partition by utid order by ts) p from sched where utid != 0) where p is not null and p != c group by 1, 2 order by 1, 2;
-- shape: longest uninterrupted chain
select max(len), count(*) from (select cpu, g, sum(dur) len from (select cpu, dur, sum(chg) over (partition by cpu order by ts rows unbounded preceding) g from (select cpu, ts, dur, utid = 0 as idle, case when (utid = 0) = lag(utid = 0) over (partition by cpu order by ts) then 0 else 1 end chg from sched)) group by cpu, g);
-- shape: nearest slice start after each wake
select count(*), avg(d) from (select (select min(s.ts) from slice s where s.ts >= w.ts) - w.ts d from thread_state w where w.state = 'R');
-- shape: select all of a filter ordered by time
select ts, dur, cpu, utid, end_state, priority from sched where dur between 100000 and 2000000 order by dur, ts;
-- shape: thread states for ui track
select ts, dur, cpu, state, io_wait, blocked_function from thread_state where utid = (select utid from thread_state group by utid order by count(*) desc limit 1) order by ts;
-- shape: quantised by the UI
select (ts / 1000000) * 1000000 q, max(dur), state, min(id) from thread_state where utid = 5 group by q order by q;
-- shape: search by name
select s.id, s.name, s.ts, s.dur, t.name from slice s left join thread_track tt on tt.id = s.track_id left join thread t using (utid) where s.name like '%re%' order by s.ts limit 5000;
-- shape: aggregation pane
select p.name pn, t.name tn, t.tid, count(*) occ, sum(s.dur) total, avg(s.dur) mean, min(s.dur) lo, max(s.dur) hi from thread_state s left join thread t using (utid) left join process p using (upid) where s.ts < (select end_ts - 1000000 from trace_bounds) and s.ts + s.dur > (select start_ts + 1000000 from trace_bounds) group by s.utid, s.state order by total desc, s.utid, s.state;
-- shape: two aggregates joined back
select s.cpu, s.c, r.c, s.d * 1.0 / r.d from (select cpu, count(*) c, sum(dur) d from sched group by cpu) s left join (select cpu, count(*) c, sum(dur) d from thread_state where state = 'Running' group by cpu) r using (cpu) order by 1;
-- shape: union of views counted by type
select k, count(*), sum(d) from (select 'slice' k, dur d from slice union all select 'sched', dur from sched union all select 'state', dur from thread_state where state != 'S') group by k order by k;
-- shape: distinct on expressions
select count(*) from (select distinct utid, ts / 10000000, cpu from sched);
-- shape: count distinct by group two ways
select cpu, count(distinct utid), count(distinct ts / 1000000), count(distinct end_state) from sched group by cpu order by cpu;
-- shape: bounded by series of windows
with recursive w(i, a) as (select 0, (select min(ts) from sched) union all select i + 1, a + 10000000 from w where i < 500) select w.i, count(s.id), sum(s.dur) from w left join sched s on s.ts >= w.a and s.ts < w.a + 10000000 group by w.i order by w.i;
-- shape: overlapped time in series of windows
with recursive w(i, a) as (select 0, (select min(ts) from sched) union all select i + 1, a + 10000000 from w where i < 300) select w.i, s.cpu, sum(min(s.ts + s.dur, w.a + 10000000) - max(s.ts, w.a)) busy from w join sched s on s.ts < w.a + 10000000 and s.ts + s.dur > w.a where s.utid != 0 group by 1, 2 order by 1, 2;
-- shape: wakeup graph roots
include perfetto module sched.thread_executing_span;
select count(*), sum(dur) from _wakeup_graph;
-- shape: states module
include perfetto module sched.states;
select sched_state_to_human_readable_string(state) k, count(*), sum(dur) from thread_state group by 1 order by 2 desc, 1;
-- shape: thread state io wait function
include perfetto module sched.states;
select sched_state_io_to_human_readable_string(state, io_wait) k, cpu, count(*) from thread_state group by 1, 2 order by 3 desc, 1, 2;
-- shape: human readable slice name
include perfetto module slices.with_context;
select thread_name, process_name, name, count(*), sum(dur) from thread_slice group by 1, 2, 3 order by 5 desc, 1, 2, 3 limit 50;
-- shape: time in state module
include perfetto module slices.time_in_state;
select name, state, sum(dur), count(*) from thread_slice_time_in_state group by 1, 2 order by 3 desc, 1, 2 limit 40;
-- shape: cpu time of slices module
include perfetto module slices.cpu_time;
select s.name, sum(c.cpu_time), count(*) from thread_slice_cpu_time c join slice s on s.id = c.id group by 1 order by 2 desc, 1 limit 30;
-- shape: self dur module
include perfetto module slices.self_dur;
select s.name, sum(d.self_dur) from slice_self_dur d join slice s using (id) group by 1 order by 2 desc, 1 limit 30;
-- shape: hierarchy module
include perfetto module slices.hierarchy;
select s.name, count(*) from slice s join _slice_ancestor_and_self(s.id) a where s.depth > 0 group by 1 order by 2 desc, 1 limit 20;
-- shape: parallelism module
include perfetto module sched.thread_level_parallelism;
select active_cpu_count, count(*), max(ts) from sched_active_cpu_count group by 1 order by 1;
-- shape: runnable count module joined
include perfetto module sched.thread_level_parallelism;
select max(runnable_thread_count), avg(runnable_thread_count) from sched_runnable_thread_count;
-- shape: previous runnable module
include perfetto module sched.runnable;
select t.name, count(*), avg(r.ts - p.ts) from sched_previous_runnable_on_thread x join thread_state r on r.id = x.id join thread_state p on p.id = x.prev_runnable_id join thread t on t.utid = r.utid group by 1 order by 2 desc, 1 limit 30;
-- shape: syscalls module
include perfetto module linux.perf.samples;
select count(*) from linux_perf_samples_summary_tree;
-- shape: irq module
include perfetto module linux.irqs;
select name, count(*), sum(dur) from linux_hard_irqs group by 1 order by 2 desc, 1;
-- shape: flows joined both sides
select a.name, b.name, count(*), avg(b.ts - a.ts) from flow f join slice a on a.id = f.slice_out join slice b on b.id = f.slice_in group by 1, 2 order by 3 desc, 1, 2 limit 30;
-- shape: counter value at slice ends
select s.name, count(*), avg((select c.value from counter c where c.track_id = 1 and c.ts <= s.ts + s.dur order by c.ts desc limit 1) - (select c.value from counter c where c.track_id = 1 and c.ts <= s.ts order by c.ts desc limit 1)) from slice s group by 1 order by 2 desc, 1 limit 10;
-- shape: case on names
select case when name glob 'sys_*' then substr(name, 5) when name like '%0x%' then 'irq' else lower(name) end k, count(*), sum(dur), avg(dur) from slice group by k order by 3 desc, 1 limit 40;
-- shape: sibling index by window
select name, max(i), count(*) from (select name, row_number() over (partition by parent_id order by ts) i from slice where parent_id is not null) group by name order by 2 desc, 1 limit 20;
-- shape: time between same slices
select name, count(*), avg(g), min(g), max(g) from (select name, ts - lag(ts + dur) over (partition by track_id, name order by ts) g from slice where dur >= 0) where g is not null group by name order by 2 desc, 1 limit 30;
-- shape: sched enriched table
create perfetto table enr as select s.id, s.ts, s.dur, s.cpu, s.utid, t.name tname, t.tid, p.name pname, p.pid, s.ts + s.dur te, lead(s.ts) over (partition by s.utid order by s.ts) nxt from sched s join thread t using (utid) left join process p using (upid);
select pname, count(*), avg(nxt - te) from enr where utid != 0 group by 1 order by 2 desc, 1;
-- shape: table of states then index then lookup
create perfetto table stt as select id, ts, dur, utid, state, waker_utid from thread_state where dur > 0;
create perfetto index stx on stt(utid, ts);
select count(*), sum(b.dur) from sched a join stt b on b.utid = a.utid and b.ts = a.ts + a.dur;
-- shape: view over view over view
create perfetto view v1 as select *, ts + dur te from sched where dur > 0;
create perfetto view v2 as select v1.*, t.name tn, t.upid from v1 join thread t using (utid);
create perfetto view v3 as select v2.*, p.name pn from v2 left join process p using (upid);
select pn, tn, cpu, count(*), sum(te - ts) from v3 where tn is not null group by 1, 2, 3 order by 5 desc, 1, 2, 3 limit 40;
-- shape: function by row with subquery
create perfetto function tname(u long) returns string as select name from thread where utid = $u;
select tname(utid) n, count(*), sum(dur) from sched group by 1 order by 3 desc, 1 limit 30;
-- shape: function returning table joined
create perfetto function states_of(u long) returns table(ts long, dur long, state string) as select ts, dur, state from thread_state where utid = $u;
select t.name, s.state, count(*), sum(s.dur) from thread t join states_of(t.utid) s group by t.utid, s.state order by 4 desc, t.utid, 2 limit 50;
-- shape: round and cast buckets
select cast(log(dur + 1) / log(2) as int) b, count(*), round(avg(dur) / 1e3, 1) from sched where dur >= 0 group by b order by b;
-- shape: hex and bits
select hex(cpu), utid & 7 k, utid >> 3 h, count(*) from sched group by 1, 2, 3 order by 4 desc, 1, 2, 3 limit 40;
-- shape: states of the busiest thread
select state, count(*), sum(dur) from thread_state where utid = (select utid from thread_state group by utid order by count(*) desc limit 1) group by state order by state;
-- shape: above two values computed once
select cpu, count(*) from sched where dur > (select percentile(dur, 90) from sched) or dur > (select avg(dur) * 1.0 from thread_state) group by cpu order by cpu;
-- shape: longest of the first event's cpu
select id, dur from sched where cpu = (select cpu from ftrace_event group by cpu order by count(*) desc, cpu limit 1) order by dur desc, id limit 20;
