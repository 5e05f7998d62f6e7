-- Statements as analysts, dashboards and the UI write them, for bench_shapes. None was the pattern of a plan.

-- shape: wakers of each process
select p.name, wp.name as waker, count(*) n, count(distinct ts.utid) threads from thread_state ts join thread t on t.utid = ts.utid left join process p on p.upid = t.upid join thread wt on wt.utid = ts.waker_utid left join process wp on wp.upid = wt.upid where ts.state = 'R' group by 1, 2 order by n desc, 1, 2 limit 50;
-- shape: state shares by process
select p.name, 100.0 * sum(iif(ts.state = 'Running', ts.dur, 0)) / sum(ts.dur) as running, 100.0 * sum(iif(ts.state in ('R', 'R+'), ts.dur, 0)) / sum(ts.dur) as runnable from thread_state ts join thread using (utid) join process p using (upid) where ts.dur > 0 group by p.upid order by running desc;
-- shape: longest runnable by cpu
select cpu, max(dur), utid, ts from thread_state where state = 'Running' group by cpu;
-- shape: log histogram of slices
select cast(log2(dur + 1) as int) as bucket, count(*), min(dur), max(dur) from sched where dur >= 0 group by bucket order by bucket;
-- shape: buckets of a millisecond
select (ts - trace_start()) / 1000000 as ms, cpu, sum(dur) / 1e6 as busy from sched where utid != 0 group by 1, 2 order by 1, 2;
-- shape: top two threads of each cpu
with d as (select cpu, utid, sum(dur) as total from sched where utid > 0 group by cpu, utid), r as (select *, row_number() over (partition by cpu order by total desc, utid) as rn from d) select r.cpu, t.name, r.total from r join thread t using (utid) where rn <= 2 order by 1, 3 desc;
-- shape: preempted by whom
select t1.name, t2.name, count(*) from (select utid, lead(utid) over (partition by cpu order by ts) as next_utid, end_state from sched) s join thread t1 on t1.utid = s.utid join thread t2 on t2.utid = s.next_utid where s.end_state = 'R' group by 1, 2 order by 3 desc, 1, 2 limit 25;
-- shape: gap to previous slice
select cpu, avg(gap), max(gap), sum(gap > 1000000) from (select cpu, ts - lag(ts + dur) over (partition by cpu order by ts) as gap from sched where utid != 0) where gap is not null group by cpu;
-- shape: moving average
select count(*), sum(m > 100000) from (select avg(dur) over (partition by utid order by ts rows between 9 preceding and current row) as m from sched);
-- shape: migrations
select t.name, count(*) as migrations from (select utid, cpu, lag(cpu) over (partition by utid order by ts) as prev from sched) s join thread t using (utid) where s.cpu != s.prev and utid != 0 group by utid order by migrations desc, t.name limit 20;
-- shape: sessions of activity
select utid, count(distinct session) as sessions, max(len) from (select utid, session, count(*) as len from (select utid, ts, sum(is_new) over (partition by utid order by ts) as session from (select utid, ts, iif(ts - lag(ts) over (partition by utid order by ts) > 10000000, 1, 0) as is_new from sched where utid != 0)) group by utid, session) group by utid order by 2 desc, 1 limit 20;
-- shape: percentiles by end state
select end_state, count(*), percentile(dur, 50), percentile(dur, 90), percentile(dur, 99) from sched group by end_state;
-- shape: median by process
select p.name, median(s.dur) from sched s join thread t using (utid) join process p using (upid) group by p.name order by 2 desc;
-- shape: group_concat of threads
select p.pid, group_concat(distinct t.name) from sched s join thread t using (utid) join process p using (upid) group by p.pid order by 1;
-- shape: count distinct pairs
select count(*) from (select distinct utid, cpu from sched where dur > 1000);
-- shape: distinct three keys in order
select distinct cpu, end_state, priority from sched order by 1, 2, 3;
-- shape: union all of kinds
select kind, count(*), sum(dur) from (select 'sched' as kind, dur from sched where utid != 0 union all select 'state', dur from thread_state where state = 'S' union all select 'slice', dur from slice) group by kind;
-- shape: union then join
select t.name, count(*) from (select utid from sched where dur > 100000 union select waker_utid from thread_state where waker_utid is not null) u join thread t using (utid) group by 1 order by 2 desc, 1;
-- shape: except and union all
select utid from sched where cpu = 0 except select utid from sched where cpu = 1 union all select upid from process;
-- shape: intersect of two
select utid from sched where cpu = 0 intersect select utid from thread_state where state = 'D';
-- shape: utid in sub of states
select count(*), sum(dur) from sched where utid in (select utid from thread_state where state = 'D' group by utid having count(*) > 100);
-- shape: not in sub
select t.name, count(*) from sched s join thread t using (utid) where s.utid not in (select utid from thread where name like 'kworker%') group by 1 order by 2 desc, 1 limit 30;
-- shape: exists a wakeup
select count(*) from thread t where exists (select 1 from thread_state s where s.utid = t.utid and s.waker_utid is not null and s.dur > 1000000);
-- shape: correlated count
select t.utid, t.name, (select count(*) from sched s where s.utid = t.utid) as n, (select max(dur) from sched s where s.utid = t.utid) as m from thread t order by n desc, 1 limit 20;
-- shape: correlated sum over states
select t.name, (select sum(ts.dur) from thread_state ts where ts.utid = t.utid and ts.state = 'R') as wait from thread t where t.upid is not null order by wait desc, t.name limit 10;
-- shape: above own average
select count(*) from sched s join (select utid, avg(dur) as a from sched group by utid) m using (utid) where s.dur > 10 * m.a;
-- shape: previous state by id
select a.state, b.state, count(*) from thread_state a join thread_state b on b.utid = a.utid and b.ts = a.ts + a.dur group by 1, 2 order by 3 desc, 1, 2;
-- shape: waker state self join
select w.cpu, s.cpu, count(*) from thread_state s join thread_state w on s.waker_id = w.id where s.state = 'R' group by 1, 2 order by 1, 2;
-- shape: range join by time
select count(*), sum(s.dur) from slice s join thread_track tt on s.track_id = tt.id join sched c on c.utid = tt.utid and c.ts between s.ts and s.ts + s.dur;
-- shape: first sched after slice
select count(*), avg(d) from (select s.id, min(c.ts) - s.ts as d from (select * from slice order by ts limit 2000) s join sched c on c.ts >= s.ts and c.ts < s.ts + 1000000 group by s.id);
-- shape: left join on conditions
select t.name, count(s.id), sum(s.dur) from thread t left join sched s on s.utid = t.utid and s.dur > 1000000 and s.end_state = 'S' group by t.utid order by 2 desc, 1 limit 40;
-- shape: left join is null
select count(*) from thread t left join (select distinct utid from sched where dur > 5000000) s using (utid) where s.utid is null;
-- shape: case buckets
select case when dur < 10000 then '<10us' when dur < 100000 then '<100us' when dur < 1000000 then '<1ms' else 'long' end as b, count(*), sum(dur) from sched group by b order by 2;
-- shape: glob on names
select t.name, count(*), sum(dur) from sched s join thread t using (utid) where t.name glob 'kworker/*' or t.name glob '*migration*' group by t.name order by 3 desc;
-- shape: like with substr
select substr(t.name, 1, instr(t.name || '/', '/') - 1) as base, count(*), sum(s.dur) from sched s join thread t using (utid) where t.name like '%/%' group by base order by 3 desc, 1;
-- shape: in list of states
select utid, count(*) from thread_state where state in ('S', 'D', 'I', 'R+') and dur between 1000 and 50000000 group by utid having count(*) > 10 order by count(*) desc, utid limit 15;
-- shape: order by three keys offset
select ts, dur, cpu, utid from sched where end_state = 'S' order by dur desc, ts, cpu limit 20 offset 100;
-- shape: order all rows by dur
select ts, dur, utid from sched order by dur desc, ts limit 1000;
-- shape: rows of one thread
select ts, dur, cpu, end_state from sched where utid = (select utid from sched group by utid order by count(*) desc limit 1 offset 1);
-- shape: latest before each time
select id, ts, (select max(ts) from sched b where b.cpu = 0 and b.ts < a.ts) from (select * from slice order by dur desc limit 20) a;
-- shape: cte chain
with busy as (select cpu, ts, dur from sched where utid != 0), sec as (select cpu, (ts - trace_start()) / 100000000 as s, sum(dur) as d from busy group by 1, 2), mean as (select cpu, avg(d) as m from sec group by cpu) select sec.cpu, count(*) from sec join mean using (cpu) where sec.d > mean.m group by sec.cpu;
-- shape: recursive buckets
with recursive b(i) as (select 0 union all select i + 1 from b where i < 99) select b.i, count(s.id) from b left join sched s on (s.ts - trace_start()) * 100 / (trace_dur() + 1) = b.i group by b.i;
-- shape: recursive descendants
with recursive d(id, depth) as (select id, 0 from slice where parent_id is null and id < 20000 union all select s.id, d.depth + 1 from slice s join d on s.parent_id = d.id) select depth, count(*) from d group by depth;
-- shape: events by name and cpu
select name, cpu, count(*) from ftrace_event group by name, cpu order by 3 desc, 1, 2;
-- shape: events of names
select cpu, count(*) from ftrace_event where name in ('sched_waking', 'sched_wakeup', 'sched_switch') group by cpu;
-- shape: events per thread and kind
select t.name, e.name, count(*) from ftrace_event e join thread t using (utid) group by 1, 2 order by 3 desc, 1, 2 limit 30;
-- shape: extract_arg grouped
select extract_arg(arg_set_id, 'comm') as comm, count(*) from ftrace_event where name = 'sched_waking' group by 1 order by 2 desc, 1;
-- shape: extract_arg in where
select count(*), min(ts) from ftrace_event where name = 'sched_waking' and extract_arg(arg_set_id, 'target_cpu') = 1 and extract_arg(arg_set_id, 'prio') < 120;
-- shape: args of one key
select string_value, int_value, count(*) from args where key = 'target_cpu' or key = 'comm' group by 1, 2 order by 3 desc, 1, 2 limit 20;
-- shape: args joined to events
select e.name, a.key, count(*), count(distinct a.int_value) from ftrace_event e join args a using (arg_set_id) where e.name in ('sched_waking', 'irq_handler_entry', 'sys_enter', 'timer_start') group by 1, 2 order by 1, 2;
-- shape: args pivot
select comm.string_value, avg(prio.int_value), count(*) from ftrace_event e join args comm on comm.arg_set_id = e.arg_set_id and comm.key = 'comm' join args prio on prio.arg_set_id = e.arg_set_id and prio.key = 'prio' where e.name = 'sched_waking' group by 1 order by 3 desc, 1;
-- shape: display values
select flat_key, value_type, count(*) from args group by 1, 2 order by 1, 2;
-- shape: slices by name
select name, count(*) as n, sum(dur), avg(dur), max(dur) from slice group by name order by n desc, name;
-- shape: slices with thread and process
select p.name, t.name, s.name, sum(s.dur) from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) left join process p using (upid) group by 1, 2, 3 order by 4 desc, 1, 2, 3 limit 100;
-- shape: slices with their parents
select p.name, c.name, count(*), sum(c.dur) from slice c join slice p on c.parent_id = p.id group by 1, 2 order by 3 desc, 1, 2;
-- shape: self time of slices
select s.name, sum(s.dur - coalesce(c.d, 0)) from slice s left join (select parent_id, sum(dur) as d from slice where parent_id is not null group by parent_id) c on c.parent_id = s.id group by s.name order by 2 desc, 1 limit 20;
-- shape: slices of tracks by type
select t.type, t.name, count(*) from slice s join track t on t.id = s.track_id group by 1, 2 order by 3 desc, 1, 2;
-- shape: gaps between slices of a track
select track_id, max(gap), avg(gap) from (select track_id, ts - lag(ts + dur) over (partition by track_id order by ts) as gap from slice where depth = 0) group by track_id;
-- shape: thread_slice view
include perfetto module slices.with_context;
select thread_name, name, count(*), sum(dur) from thread_slice group by 1, 2 order by 4 desc, 1, 2 limit 20;
-- shape: counters by name
select t.name, count(*), min(value), max(value), avg(value) from counter c join counter_track t on c.track_id = t.id group by t.name order by 1;
-- shape: counter steps
select track_id, count(*), max(d) from (select track_id, value - lag(value) over (partition by track_id order by ts) as d from counter) where d != 0 group by track_id;
-- shape: counter weighted mean
select track_id, sum(value * d) / sum(d) from (select track_id, value, lead(ts, 1, trace_end()) over (partition by track_id order by ts) - ts as d from counter) where d > 0 group by track_id;
-- shape: ancestors of slices
select s.id, count(a.id) from (select id from slice where depth > 0 order by id limit 3000) s join ancestor_slice(s.id) a group by s.id order by 2 desc, 1 limit 10;
-- shape: descendants
select count(*) from (select id from slice where parent_id is null order by dur desc, id limit 2000) s, descendant_slice(s.id) d where d.dur > 0;
-- shape: interval intersect
include perfetto module intervals.intersect;
select cpu, count(*), sum(dur) from _interval_intersect!(((select id, ts, dur, cpu from sched where utid != 0 and dur > 0), (select id, ts, dur, cpu from thread_state where state = 'Running' and dur > 0 and io_wait is null)), (cpu)) group by cpu;
-- shape: interval intersect of slices
include perfetto module intervals.intersect;
select s.name, sum(ii.dur) from _interval_intersect!(((select s.id, s.ts, s.dur, tt.utid from slice s join thread_track tt on tt.id = s.track_id where s.dur > 0), (select id, ts, dur, utid from sched where dur > 0)), (utid)) ii join slice s on s.id = ii.id_0 group by 1 order by 2 desc, 1;
-- shape: overlap count
include perfetto module intervals.overlap;
select max(value), avg(value) from intervals_overlap_count!((select ts, dur from thread_state where state = 'R' and dur > 0), ts, dur);
-- shape: overlap count by group
include perfetto module intervals.overlap;
select group_name, max(value) from intervals_overlap_count_by_group!((select ts, dur, cpu from thread_state where state = 'Running' and dur > 0), ts, dur, cpu) group by 1;
-- shape: merged intervals
include perfetto module intervals.overlap;
select count(*), sum(dur) from interval_merge_overlapping!((select ts, dur from sched where utid != 0 and dur > 0), 0);
-- shape: merged by partition
include perfetto module intervals.overlap;
select utid, count(*), sum(dur) from interval_merge_overlapping_partitioned!((select ts, dur, utid from thread_state where state != 'S' and dur > 0), (utid)) group by utid order by 3 desc, 1 limit 10;
-- shape: span join partitioned
create perfetto table sj_a as select ts, dur, utid, cpu from sched where dur > 0 and utid != 0;
create perfetto table sj_b as select ts, dur, utid, state from thread_state where dur > 0 and utid != 0;
create virtual table sj using span_join(sj_a partitioned utid, sj_b partitioned utid);
select state, count(*), sum(dur) from sj group by state;
-- shape: span join with condition
create perfetto table sk_a as select ts, dur, cpu, utid from sched where dur > 0;
create perfetto table sk_b as select ts, dur, cpu from thread_state where state = 'Running' and dur > 0 and cpu is not null;
create virtual table sk using span_join(sk_a partitioned cpu, sk_b partitioned cpu);
select cpu, sum(dur) from sk where utid != 0 and dur > 1000 group by cpu;
-- shape: span left join
create perfetto table sl_a as select ts, dur, utid from thread_state where state = 'R' and dur > 0 and utid != 0;
create perfetto table sl_b as select ts, dur, utid, cpu from sched where dur > 0 and utid != 0;
create virtual table sl using span_left_join(sl_a partitioned utid, sl_b partitioned utid);
select t.name, sum(sl.dur) from sl join thread t using (utid) where sl.cpu is null group by 1 order by 2 desc, 1 limit 10;
-- shape: create table of join
create perfetto table cj as select s.ts, s.dur, t.name as thread, p.name as process, s.cpu from sched s join thread t using (utid) left join process p using (upid) where s.dur > 0;
select process, count(*), sum(dur) from cj group by 1 order by 3 desc;
-- shape: create table of windows
create perfetto table cw as select utid, ts, dur, lead(ts) over (partition by utid order by ts) - (ts + dur) as sleep, row_number() over (partition by utid order by ts) as n from sched where utid != 0;
select count(*), avg(sleep), max(n) from cw;
-- shape: create view and ask
create perfetto view cv as select s.ts, s.dur, s.cpu, t.name as thread, coalesce(p.name, 'kernel') as process from sched s join thread t using (utid) left join process p using (upid);
select process, thread, cpu, sum(dur) from cv where dur > 0 group by 1, 2, 3 order by 4 desc, 1, 2, 3 limit 50;
-- shape: scalar function
create perfetto function to_bucket(dur long) returns long as select case when $dur < 1000 then 0 when $dur < 1000000 then 1 else 2 end;
select to_bucket(dur) as b, count(*) from sched group by 1 order by 1;
-- shape: scalar function of columns
create perfetto function share(a long, b long) returns double as select 1.0 * $a / $b;
select cpu, max(share(dur, trace_dur())), avg(share(dur, 1000000)) from sched group by cpu;
-- shape: scalar function with query
create perfetto function thread_label(utid long) returns string as select name || ' [' || tid || ']' from thread where utid = $utid;
select thread_label(utid) as l, sum(dur) from sched group by 1 order by 2 desc, 1 limit 10;
-- shape: table function
create perfetto function slices_of(cpu_wanted long) returns table(ts timestamp, dur duration, utid long) as select ts, dur, utid from sched where cpu = $cpu_wanted;
select utid, count(*), sum(dur) from slices_of(1) group by utid order by 3 desc, 1;
-- shape: macro
create perfetto macro by_thread(tab TableOrSubquery, column ColumnName) returns TableOrSubquery as (select utid, sum($column) as total, count(*) as n from $tab group by utid);
select t.name, m.total, m.n from by_thread!(sched, dur) m join thread t using (utid) order by 2 desc, 1 limit 10;
-- shape: ntile
select tile, min(dur), max(dur), count(*) from (select dur, ntile(10) over (order by dur, id) as tile from sched where dur > 0) group by tile;
-- shape: rank of threads by second
select s, name, total from (select s, name, total, rank() over (partition by s order by total desc) as r from (select (ts - trace_start()) / 1000000000 as s, t.name, sum(dur) as total from sched join thread t using (utid) where utid != 0 group by 1, t.name)) where r = 1 order by s, name;
-- shape: first and last value
select utid, max(l - f) from (select utid, first_value(ts) over w as f, last_value(ts) over w as l from sched window w as (partition by utid order by ts rows between unbounded preceding and unbounded following)) group by utid order by 2 desc, 1 limit 10;
-- shape: groups frame
select count(*), max(n) from (select count(*) over (partition by cpu order by priority groups between 1 preceding and current row) as n from sched);
-- shape: filtered window
select max(n), count(*) from (select sum(dur) filter (where end_state = 'S') over (partition by cpu order by ts) as n from sched);
-- shape: two windows
select max(a), max(b) from (select row_number() over (partition by cpu order by ts) as a, row_number() over (partition by utid order by ts) as b from sched);
-- shape: cumulative share
select count(*) from (select total, sum(total) over (order by total desc, utid) * 1.0 / sum(total) over () as share from (select utid, sum(dur) as total from sched where utid != 0 group by utid)) where share < 0.9;
-- shape: running max
select count(*) from (select ts, max(ts + dur) over (partition by cpu order by ts rows between unbounded preceding and 1 preceding) as e from slice join (select id as track_id, 1 as cpu from track) using (track_id)) where e > ts;
-- shape: strftime of real time
select strftime('%H:%M:%S', ts / 1000000000, 'unixepoch') as t, count(*) from sched group by 1 order by 1;
-- shape: nulls
select count(*), count(waker_utid), count(io_wait), count(blocked_function), sum(waker_utid is null and state = 'R'), sum(coalesce(io_wait, 0)) from thread_state;
-- shape: group by null column
select io_wait, irq_context, state, count(*) from thread_state group by 1, 2, 3 order by 4 desc, 1, 2, 3;
-- shape: order nulls last
select utid, waker_utid, dur from thread_state order by waker_utid nulls last, dur desc, id limit 30;
-- shape: having over expression
select utid, sum(dur) * 1.0 / count(*) as mean from sched group by utid having sum(dur) * 1.0 / count(*) > 100000 and max(priority) <= 120 order by mean desc limit 20;
-- shape: group by expression of text
select upper(substr(name, 1, 3)) as k, count(*), avg(length(name)) from ftrace_event group by k order by 2 desc, 1;
-- shape: min and max with bare columns
select t.name, max(s.dur), s.ts, s.cpu from sched s join thread t using (utid) where utid != 0 group by s.utid order by 2 desc, 1 limit 20;
-- shape: exists correlated by time
select count(*) from (select * from thread_state where state = 'D' order by dur desc, id limit 500) d where exists (select 1 from sched s where s.utid = d.utid and s.ts = d.ts + d.dur);
-- shape: sum over case columns
select cpu, sum(case when end_state = 'S' then dur end), sum(case when end_state like 'R%' then dur end), sum(case when end_state is null then 1 else 0 end), count(case when dur > 1e6 then 1 end) from sched group by cpu order by cpu;
-- shape: total time by priority class
select case when priority < 100 then 'rt' when priority < 120 then 'high' when priority = 120 then 'normal' else 'low' end as class, ucpu, total(dur) / 1e9 from sched where utid not in (select utid from thread where tid = 0) group by 1, 2 order by 1, 2;
-- shape: thread name or default
select ifnull(t.name, 'thread ' || t.tid) as n, count(*) from thread_state s join thread t using (utid) group by n order by 2 desc, 1 limit 10;
-- shape: printf key
select printf('%d/%s', cpu, end_state) as k, count(*) from sched group by k order by k;
-- shape: main threads only
select p.name, sum(s.dur) from sched s join thread t using (utid) join process p on p.upid = t.upid and t.tid = p.pid group by p.upid order by 2 desc, 1;
-- shape: two levels of groups
select n_cpus, count(*) from (select utid, count(distinct cpu) as n_cpus from sched group by utid) group by n_cpus order by 1;
-- shape: median of sums
select median(total), percentile(total, 95), avg(n) from (select utid, sum(dur) as total, count(*) as n from sched group by utid);
-- shape: scalar subqueries in list
select (select count(*) from sched) as s, (select count(*) from thread_state) as ts, (select max(ts + dur) - min(ts) from sched) as span, (select sum(dur) from sched where utid = 0) as idle;
-- shape: share of whole
select cpu, sum(dur) * 100.0 / (select sum(dur) from sched where dur > 0) as pct from sched where dur > 0 group by cpu order by cpu;
-- shape: values list join
select v.column2, count(*) from sched s join (values (0, 'little'), (1, 'big'), (2, 'big'), (3, 'little')) v on v.column1 = s.cpu group by 1;
-- shape: running threads at time
select t.name, s.cpu from sched s join thread t using (utid) where s.ts <= trace_start() + 3000000000 and s.ts + s.dur > trace_start() + 3000000000 order by s.cpu;
-- shape: time window rollup
select utid, sum(min(ts + dur, trace_start() + 4000000000) - max(ts, trace_start() + 2000000000)) as d from sched where ts < trace_start() + 4000000000 and ts + dur > trace_start() + 2000000000 group by utid order by d desc, utid;
-- shape: states of a window by the UI
select state, io_wait, sum(min(ts + dur, trace_start() + 4000000000) - max(ts, trace_start() + 2000000000)) as total_dur, count() as occurrences from thread_state join thread using (utid) where ts + dur > trace_start() + 2000000000 and ts < trace_start() + 4000000000 group by utid, state, io_wait order by 3 desc, 1, 2 limit 100;
-- shape: mipmap buckets by the UI
select (ts - trace_start()) / 16777216 as bucket, max(dur), min(ts), id, count() from sched where utid != 0 and cpu = 0 group by bucket;
-- shape: per second percentiles
select (ts - trace_start()) / 1000000000 as s, percentile(dur, 99) as p99 from thread_state where state = 'R' group by s order by s;
-- shape: wakeup to run latency
select t.name, count(*), avg(r.dur), max(r.dur) from thread_state r join thread_state n on n.utid = r.utid and n.ts = r.ts + r.dur and n.state = 'Running' join thread t on t.utid = r.utid where r.state = 'R' group by t.name order by 3 desc, 1 limit 30;
-- shape: next state by lead
select state, nxt, count(*), avg(dur) from (select state, dur, lead(state) over (partition by utid order by ts) as nxt from thread_state) where nxt is not null group by state, nxt order by 3 desc, 1, 2;
-- shape: runs of one cpu
select cpu, max(len) from (select cpu, grp, count(*) as len from (select cpu, utid, row_number() over (partition by cpu order by ts) - row_number() over (partition by cpu, utid order by ts) as grp from sched) group by cpu, utid, grp) group by cpu;
-- shape: events between two
select count(*) from ftrace_event where ts between trace_start() + 1000000000 and trace_start() + 1500000000 and name != 'sched_switch';
-- shape: distinct names of a window
select distinct name from ftrace_event where ts > trace_start() + 1000000000 order by name;
-- shape: pairs of entry and exit
select name, count(*), avg(d) from (select name, cpu, lead(ts) over (partition by cpu order by ts) - ts as d from ftrace_event where name like 'irq_handler%') where name = 'irq_handler_entry' group by name;
-- shape: count by two texts
select e.name, t.name, count(*) as n from ftrace_event e left join thread t on t.utid = e.utid where e.name glob 'sched_*' group by e.name, t.name having n > 5 order by n desc, 1, 2 limit 40;
-- shape: json of rows
select json_group_array(name) from (select distinct name from ftrace_event order by 1);
-- shape: string_agg
select cpu, string_agg(state, ',') from (select distinct cpu, state from thread_state where cpu is not null) group by cpu;
-- shape: group_concat ordered query
select utid, group_concat(cpu, '>') from (select utid, cpu from sched where utid in (select utid from sched group by utid having count(*) < 200) order by utid, ts) group by utid;
-- shape: simple projection with text
select ts, dur, (select name from thread t where t.utid = s.utid) as name from sched s where dur > 2000000;
-- shape: rows of join in order
select s.ts, s.dur, t.name, p.name from sched s join thread t using (utid) left join process p using (upid) where s.cpu = 1 order by s.ts;
-- shape: all rows of join
select s.ts, s.dur, s.cpu, t.name from sched s left join thread t using (utid);
-- shape: filter only
select * from sched where dur > 500000 and end_state = 'S' and cpu in (0, 1);
-- shape: sum with cast and text
select cast(sum(dur) as text) || ' ns', round(avg(dur) / 1e3, 2) || ' us' from sched where end_state = 'D';
-- shape: bit tests
select common_flags & 1 as f, count(*) from ftrace_event where common_flags | 2 > 0 group by f;
-- shape: between in case
select sum(case when ts between trace_start() and trace_start() + 1000000000 then dur else 0 end) as first, sum(case when ts not between trace_start() and trace_start() + 1000000000 then dur else 0 end) as rest from sched;
-- shape: not exists
select count(*) from thread t where not exists (select 1 from sched s where s.utid = t.utid and s.dur > 10000000);
-- shape: is distinct from
select count(*) from (select utid, state, lag(state) over (partition by utid order by ts) as p from thread_state) where state is distinct from p;
-- shape: collate nocase
select t.name collate nocase as n, count(*) from sched s join thread t using (utid) group by 1 order by 1;
-- shape: median absolute deviation
with m as (select utid, median(dur) as m from sched where utid != 0 group by utid) select s.utid, median(abs(s.dur - m.m)) from sched s join m using (utid) group by s.utid order by 2 desc, 1 limit 10;
-- shape: cross join of constants
select b.lo, count(*) from (select 0 as lo, 10000 as hi union all select 10000, 100000 union all select 100000, 1000000 union all select 1000000, 1000000000000) b join sched s on s.dur >= b.lo and s.dur < b.hi group by b.lo order by b.lo;
-- shape: arg of slices
select s.name, extract_arg(s.arg_set_id, 'debug.irq') as v, count(*) from slice s where s.arg_set_id is not null group by 1, 2 order by 3 desc, 1, 2 limit 20;
-- shape: args of slices by key
select s.name, a.key, count(*) from slice s join args a on a.arg_set_id = s.arg_set_id group by 1, 2 order by 3 desc, 1, 2 limit 20;
-- shape: process of slices through tracks
select process_name, count(*), sum(dur) from (select s.*, p.name as process_name from slice s join thread_track tt on tt.id = s.track_id join thread using (utid) join process p using (upid)) group by 1 order by 3 desc, 1;
-- shape: tables of tables
select cpu, name, dur, pct from (select cpu, name, dur, round(100.0 * dur / sum(dur) over (partition by cpu), 1) as pct, row_number() over (partition by cpu order by dur desc, name) as rn from (select cpu, t.name as name, sum(s.dur) as dur from sched s join thread t using (utid) group by cpu, t.name)) where rn <= 3 order by cpu, rn;
-- shape: wide list
select s.id, s.ts, s.ts - trace_start() as rel, s.dur, s.dur / 1000 as us, s.cpu, s.utid, t.tid, t.name, p.pid, p.name as pname, s.end_state, s.priority, (s.dur > 1000000) as is_long from sched s join thread t using (utid) left join process p using (upid) where s.utid != 0 order by s.dur desc, s.id limit 200;
-- shape: count of rows that match a view
include perfetto module slices.with_context;
select count(*) from thread_slice where process_name is not null and dur > 0;
-- shape: idle gaps by cpu
select cpu, sum(dur) as idle, max(dur), count(*), sum(dur) * 100.0 / trace_dur() from sched where utid = 0 or utid in (select utid from thread where name glob 'swapper*') group by cpu;
-- shape: lag over two partitions with default
select sum(d) from (select ts - lag(ts, 1, ts) over (partition by cpu, priority order by ts) as d from sched);
-- shape: lead with filter outside
select count(*) from (select utid, end_state, lead(ts) over (partition by utid order by ts) - ts - dur as off from sched) where end_state = 'D' and off > 1000000;
-- shape: overlapping slices
select count(*) from slice a join slice b on a.track_id = b.track_id and b.ts > a.ts and b.ts < a.ts + a.dur where a.depth = 0 and b.depth = 1;
-- shape: sched at slice start
select c.cpu, count(*) from slice s join thread_track tt on tt.id = s.track_id join sched c on c.utid = tt.utid and s.ts >= c.ts and s.ts < c.ts + c.dur group by c.cpu;
-- shape: date of events
select date(ts / 1000000000, 'unixepoch') as d, time(ts / 1000000000, 'unixepoch') as t, count(*) from ftrace_event group by 1, 2 order by 1, 2;
-- shape: quantile by row_number
select utid, dur from (select utid, dur, row_number() over (partition by utid order by dur) as rn, count(*) over (partition by utid) as n from sched) where rn = n / 2 + 1 order by dur desc, utid limit 20;
-- shape: stddev by hand
select utid, sqrt(avg(dur * 1.0 * dur) - avg(dur) * avg(dur)) as sd from sched where utid != 0 group by utid having count(*) > 10 order by sd desc, utid limit 10;
-- shape: thread count by state at end
select state, count(*) from (select utid, state, row_number() over (partition by utid order by ts desc) as r from thread_state) where r = 1 group by state order by 2 desc, 1;
-- shape: max by subquery equality
select * from sched where dur = (select max(dur) from sched where utid != 0);
-- shape: all pairs of cpus
select a.cpu as a, b.cpu as b, a.n, b.n from (select cpu, count(*) as n from sched group by cpu) a, (select cpu, count(*) as n from sched group by cpu) b where a.cpu < b.cpu;
-- shape: using three tables and or
select count(*), sum(s.dur) from sched s join thread t using (utid) left join process p using (upid) where p.name like '%sh%' or t.name like '%sh%' or t.tid = 1;
