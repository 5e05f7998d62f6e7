-- Statements of reports and ad hoc questions: self times, gaps, the first of each group, rolling averages, pivots,
-- buckets, chains, single values; the last ones are for recordings of track events. For bench_shapes.

-- shape: self time of slices by join
select s.name, sum(s.dur) total, sum(s.dur - coalesce(c.d, 0)) self from slice s left join (select parent_id, sum(dur) d from slice where parent_id is not null group by parent_id) c on c.parent_id = s.id group by s.name order by self desc, s.name limit 20;
-- shape: gaps between slices above
select name, count(*), sum(gap), max(gap) from (select name, ts - lag(ts + dur) over (partition by track_id, depth order by ts, id) gap from slice) where gap > 1000 group by name order by 3 desc, 1 limit 20;
-- shape: top five slices of each name
select name, ts, dur from (select name, ts, dur, id, row_number() over (partition by name order by dur desc, id) r from slice) where r <= 5 order by name, dur desc, id;
-- shape: rolling average of run time
select utid, max(a) from (select utid, avg(dur) over (partition by utid order by ts rows between 9 preceding and current row) a from sched) group by utid order by 2 desc, 1 limit 20;
-- shape: longest wait per process
select p.pid, p.name, max(s.dur), count(*) from thread_state s join thread t using (utid) join process p using (upid) where s.state in ('S', 'D', 'R', 'R+') group by p.upid order by 3 desc, 1 limit 20;
-- shape: latency percentiles by state
select state, count(*), percentile(dur, 50) p50, percentile(dur, 90) p90, percentile(dur, 99) p99, max(dur) from thread_state where dur >= 0 group by state order by 2 desc;
-- shape: exists wakeup within a millisecond
select count(*) from thread_state s where s.state = 'Running' and exists (select 1 from thread_state w where w.waker_utid = s.utid and w.ts >= s.ts and w.ts < s.ts + 1000000);
-- shape: in list of names
select t.name, count(*), sum(s.dur) from sched s join thread t using (utid) where t.name in ('bash', 'swapper', 'kworker/0:1', 'sshd', 'ksoftirqd/0', 'rcu_sched') or t.name like 'kworker%' group by t.name order by 3 desc, 1;
-- shape: pivot state by case per thread
select t.tid, t.name, sum(case s.state when 'Running' then s.dur else 0 end) run, sum(case s.state when 'R' then s.dur when 'R+' then s.dur else 0 end) runnable, sum(case s.state when 'S' then s.dur else 0 end) sleep, sum(case s.state when 'D' then s.dur else 0 end) blocked from thread_state s join thread t using (utid) group by s.utid order by run desc, t.tid limit 50;
-- shape: name prefix before slash
select substr(name, 1, instr(name || '/', '/') - 1) p, count(*) n, sum(dur) from (select t.name, s.dur from sched s join thread t using (utid) where t.name is not null) group by p order by n desc, p limit 30;
-- shape: replace and upper of names
select upper(replace(t.name, '-', '_')) n, count(*) from thread_state s join thread t using (utid) group by n order by 2 desc, 1 limit 20;
-- shape: time buckets by cpu
select (ts - trace_start()) / 10000000 b, cpu, sum(dur), count(*), count(distinct utid) from sched where utid != 0 group by b, cpu order by b, cpu;
-- shape: union of sources by time
select kind, count(*), min(ts), max(ts) from (select 'sched' kind, ts from sched union all select 'state', ts from thread_state union all select 'slice', ts from slice union all select 'event', ts from ftrace_event) group by kind order by kind;
-- shape: recursive parents of slices
with recursive up(id, parent, n) as (select id, parent_id, 0 from slice where depth > 1 union all select up.id, s.parent_id, n + 1 from up join slice s on s.id = up.parent) select n, count(*) from up group by n order by n;
-- shape: histogram of durations by log2
select cast(log(dur + 1) / log(2) as int) b, count(*), sum(dur), min(dur), max(dur) from thread_state where dur >= 0 group by b order by b;
-- shape: share of total by window
select name, n, round(100.0 * n / sum(n) over (), 2) pct from (select name, count(*) n from slice group by name) order by n desc, name limit 30;
-- shape: dedup by row_number
select count(*), sum(dur) from (select *, row_number() over (partition by utid, cpu order by ts) r from sched) where r = 1;
-- shape: first and last by group
select utid, min(ts) first, max(ts + dur) last, max(ts + dur) - min(ts) span, sum(dur) * 1.0 / (max(ts + dur) - min(ts)) util from sched where dur > 0 group by utid order by util desc, utid limit 30;
-- shape: running sum by cpu
select cpu, max(c) from (select cpu, sum(dur) over (partition by cpu order by ts) c from sched where utid != 0) group by cpu order by cpu;
-- shape: switch pairs
select prev.name, next.name, count(*) n from (select utid, lead(utid) over (partition by cpu order by ts) nx from sched) s join thread prev on prev.utid = s.utid join thread next on next.utid = s.nx group by 1, 2 order by n desc, 1, 2 limit 30;
-- shape: preempted and resumed elsewhere
select count(*), sum(gap) from (select utid, cpu, end_state, lead(cpu) over w nc, lead(ts) over w - (ts + dur) gap from sched window w as (partition by utid order by ts)) where end_state in ('R', 'R+') and nc != cpu;
-- shape: wake to run per waker cpu
select w.waker_cpu, count(*), avg(w.dur) from (select s.ts, s.dur, r.cpu waker_cpu from thread_state s join thread_state r on r.id = s.waker_id where s.state = 'R') w group by 1 order by 1;
-- shape: blocked function share
select blocked_function, io_wait, count(*), sum(dur) from thread_state where state in ('D', 'S') group by 1, 2 order by 4 desc limit 20;
-- shape: cpu of longest slice each thread
select utid, cpu, max(dur), ts from sched where utid != 0 group by utid order by 3 desc, utid limit 20;
-- shape: threads above average by subquery
select utid, sum(dur) d from sched group by utid having d > (select avg(x) from (select sum(dur) x from sched group by utid)) order by d desc, utid;
-- shape: least 3 per cpu by correlated count
select cpu, utid, d from (select cpu, utid, sum(dur) d from sched group by cpu, utid) a where (select count(*) from (select cpu c, sum(dur) e from sched group by cpu, utid) b where b.c = a.cpu and b.e > a.d) < 3 order by cpu, d desc;
-- shape: events by name per second pivot
select (ts - trace_start()) / 100000000 s, sum(name = 'sched_switch') sw, sum(name = 'sched_waking') wk, sum(name like 'irq%') irq, sum(name glob 'sys_*') sys, count(*) from ftrace_event group by s order by s;
-- shape: events between switches of a cpu
select count(*), avg(n) from (select cpu, g, count(*) n from (select cpu, name, sum(name = 'sched_switch') over (partition by cpu order by ts, id rows unbounded preceding) g from ftrace_event) group by cpu, g);
-- shape: event gaps percentiles
select name, count(*), percentile(gap, 50), percentile(gap, 99) from (select name, ts - lag(ts) over (partition by name order by ts) gap from ftrace_event) where gap is not null group by name order by 2 desc, 1;
-- shape: args of an event by flat key
select a.key, a.value_type, count(*), count(distinct coalesce(a.int_value, a.string_value)) from ftrace_event e join args a using (arg_set_id) where e.name = 'sched_waking' group by 1, 2 order by 1;
-- shape: extract_arg in order
select id, extract_arg(arg_set_id, 'pid') pid from ftrace_event where name = 'sched_waking' order by pid desc, id limit 50;
-- shape: extract_arg joined to thread
select t.name, count(*) from ftrace_event e join thread t on t.tid = extract_arg(e.arg_set_id, 'pid') where e.name = 'sched_waking' group by 1 order by 2 desc, 1 limit 20;
-- shape: extract_arg compared with a column
select count(*) from ftrace_event where name = 'sched_waking' and extract_arg(arg_set_id, 'target_cpu') != cpu;
-- shape: extract_arg in case
select case when extract_arg(arg_set_id, 'prio') < 100 then 'rt' when extract_arg(arg_set_id, 'prio') < 120 then 'high' else 'normal' end c, count(*) from ftrace_event where name = 'sched_waking' group by c order by c;
-- shape: slice args by prefix of name
select s.name, a.flat_key, count(*) from slice s join args a using (arg_set_id) group by 1, 2 order by 3 desc, 1, 2 limit 30;
-- shape: thread slice of a process
include perfetto module slices.with_context;
select process_name, thread_name, name, count(*), sum(dur) from thread_slice group by 1, 2, 3 order by 5 desc, 1, 2, 3 limit 30;
-- shape: slices per track type
select t.type, t.name, count(*), sum(s.dur) from slice s join track t on t.id = s.track_id group by 1, 2 order by 3 desc, 1, 2 limit 30;
-- shape: concurrent slices at starts
select max(n), avg(n) from (select (select count(*) from slice b where b.ts <= a.ts and b.ts + b.dur > a.ts and b.depth = 0) n from slice a where a.depth = 0 and a.dur > 100000);
-- shape: slice overlaps another thread's running
include perfetto module slices.with_context;
select count(*), sum(min(s.ts + s.dur, r.ts + r.dur) - max(s.ts, r.ts)) from thread_slice s join sched r on r.utid = s.utid and r.ts < s.ts + s.dur and r.ts + r.dur > s.ts where s.dur > 50000;
-- shape: counter at a time
select s.cpu, avg(v), count(v) from (select s.cpu, (select c.value from counter c join cpu_counter_track t on t.id = c.track_id where t.cpu = s.cpu and c.ts <= s.ts order by c.ts desc limit 1) v from sched s where s.dur > 100000) s group by 1 order by 1;
-- shape: counter range per track
select t.name, t.type, count(*), min(c.value), max(c.value), max(c.value) - min(c.value), avg(c.value) from counter c join track t on t.id = c.track_id group by c.track_id order by 3 desc, 1 limit 20;
-- shape: counter deltas by lead sum
select track_id, sum(d * v) / sum(d) from (select track_id, value v, lead(ts) over (partition by track_id order by ts) - ts d from counter) where d is not null group by track_id order by track_id;
-- shape: span join of sched and slices
create perfetto view sl1 as select s.ts, s.dur, t.utid, s.name from slice s join thread_track t on t.id = s.track_id where s.depth = 0 and s.dur > 0;
create perfetto view sc1 as select ts, dur, utid, cpu from sched where dur > 0;
create virtual table sp2 using span_join(sc1 partitioned utid, sl1 partitioned utid);
select cpu, name, count(*), sum(dur) from sp2 group by 1, 2 order by 4 desc, 1, 2 limit 20;
-- shape: overlap counts
include perfetto module intervals.overlap;
select value, count(*) from intervals_overlap_count!((select ts, dur from sched where utid != 0 and dur > 0), ts, dur) group by value order by value;
-- shape: full report of threads
select t.utid, t.tid, t.name, p.name pn, count(s.id), sum(s.dur), avg(s.dur), max(s.dur), count(distinct s.cpu), min(s.ts), max(s.ts) from thread t left join process p using (upid) left join sched s using (utid) group by t.utid order by 6 desc, 1;
-- shape: cpu time by process as share
select coalesce(p.name, t.name, 'pid ' || p.pid) who, sum(s.dur) d, round(100.0 * sum(s.dur) / (select sum(dur) from sched where utid != 0), 3) pct from sched s join thread t using (utid) left join process p using (upid) where s.utid != 0 group by who order by d desc, who limit 30;
-- shape: max concurrent runnable
with e as (select ts, 1 v from thread_state where state = 'R' union all select ts + dur, -1 from thread_state where state = 'R' and dur > 0) select max(n) from (select sum(v) over (order by ts, v rows unbounded preceding) n from e);
-- shape: state before each long run
select p, count(*), avg(dur) from (select state, dur, lag(state) over (partition by utid order by ts) p from thread_state) where state = 'Running' and dur > 500000 group by p order by 2 desc, 1;
-- shape: three states in a row
select count(*) from (select state s1, lead(state, 1) over w s2, lead(state, 2) over w s3 from thread_state window w as (partition by utid order by ts)) where s1 = 'S' and s2 = 'R' and s3 = 'Running';
-- shape: states as text path
select path, count(*) from (select state || '>' || lead(state) over w || '>' || lead(state, 2) over w path from thread_state window w as (partition by utid order by ts)) where path is not null group by path order by 2 desc, path limit 20;
-- shape: order by dur of all slices
select id, name, dur from slice order by dur desc;
-- shape: order by name then time
select name, ts, dur from slice order by name, ts;
-- shape: order by expression of states
select id, utid, dur / 1000 us from thread_state where state = 'R' order by us desc, id;
-- shape: order of a join by name
select t.name, s.ts, s.dur from sched s join thread t using (utid) where s.utid != 0 order by t.name, s.ts;
-- shape: order by text length
select name, length(name) l, count(*) from slice group by name order by l desc, name limit 50;
-- shape: texts compared less
select count(*), sum(s.dur) from sched s join thread t using (utid) where t.name < 'm' and t.name >= 'b';
-- shape: texts of two rows compared less
select count(*) from (select end_state a, lead(end_state) over (partition by cpu order by ts) b from sched) where a < b;
-- shape: min and max of texts
select s.cpu, min(t.name), max(t.name), count(distinct t.name) from sched s join thread t using (utid) group by s.cpu order by 1;
-- shape: group_concat distinct per cpu
select s.cpu, length(group_concat(distinct t.name)) from sched s join thread t using (utid) group by 1 order by 1;
-- shape: correlated group_concat distinct
select t.utid, (select group_concat(distinct s.end_state) from sched s where s.utid = t.utid) st from thread t order by 1;
-- shape: json_extract of made json
select json_extract(j, '$.c') c, count(*), sum(json_extract(j, '$.d')) from (select json_object('c', cpu, 'd', dur) j from sched where dur > 10000) group by c order by c;
-- shape: lone scalar with group
select (select utid from sched group by utid order by sum(dur) desc limit 1);
-- shape: arithmetic of scalars
select (select sum(dur) from sched where utid != 0) * 100.0 / (select sum(dur) from sched) pct, (select count(*) from thread_state) - (select count(*) from sched) d;
-- shape: scalars of time range
select (select max(ts) from sched) - (select min(ts) from sched), (select count(distinct utid) from sched), (select avg(dur) from sched where utid != 0);
-- shape: function table per row
create perfetto function top_runs(u int) returns table(ts int, dur int) as select ts, dur from sched where utid = $u order by dur desc limit 3;
select t.utid, r.ts, r.dur from thread t, top_runs(t.utid) r order by t.utid, r.dur desc, r.ts;
-- shape: function table by range per row
create perfetto function runs_in(t0 long, t1 long) returns table(cpu long, n long, d long) as select cpu, count(*) n, sum(dur) d from sched where ts >= $t0 and ts < $t1 group by cpu;
select sum(r.n), max(r.d) from (select id, ts, dur from slice where depth = 0 order by dur desc limit 200) s, runs_in(s.ts, s.ts + s.dur) r;
-- shape: scalar function with state lookup
create perfetto function state_at(u int, t int) returns string as select state from thread_state where utid = $u and ts <= $t order by ts desc limit 1;
select state_at(s.utid, s.ts + s.dur) st, count(*) from sched s where s.dur > 1000 group by 1 order by 2 desc, 1;
-- shape: not in a sub of joins
select count(*) from thread_state where utid not in (select utid from thread join process using (upid) where process.name is not null);
-- shape: antijoin by left
select count(*) from slice a left join slice b on b.parent_id = a.id where b.id is null;
-- shape: leaf slices by not exists
select name, count(*), sum(dur) from slice a where not exists (select 1 from slice b where b.parent_id = a.id) group by name order by 3 desc, 1 limit 20;
-- shape: parents and kids counted
select p.name, c.name, count(*), avg(c.dur) from slice c join slice p on p.id = c.parent_id group by 1, 2 order by 3 desc, 1, 2 limit 20;
-- shape: idle share by hour of second
select strftime('%S', ts / 1e9, 'unixepoch') s, sum(case when utid = 0 then dur end) * 1.0 / sum(dur) from sched where dur > 0 group by s order by s;
-- shape: bursts by gap over partition
select count(*), max(n) from (select utid, g, count(*) n from (select utid, ts, sum(gap > 5000000) over (partition by utid order by ts) g from (select utid, ts, ts - lag(ts) over (partition by utid order by ts) gap from sched)) group by utid, g);
-- shape: wakeups per thread pair with names
select wt.name w, t.name n, count(*) c, sum(s.dur) d from thread_state s join thread t on t.utid = s.utid join thread wt on wt.utid = s.waker_utid group by s.waker_utid, s.utid order by c desc, w, n limit 30;
-- shape: interval since last run of same cpu
select count(*), avg(s.ts - l) from (select ts, cpu, utid, lag(ts + dur) over (partition by cpu, utid order by ts) l from sched) s where l is not null;
-- shape: quartile of each row
select q, count(*), min(dur), max(dur) from (select dur, ntile(4) over (order by dur) q from sched where utid != 0) group by q order by q;
-- shape: percent_rank filter
select count(*), min(dur) from (select dur, percent_rank() over (partition by cpu order by dur) p from sched) where p > 0.99;
-- shape: median per bucket
select b, percentile(dur, 50), count(*) from (select (ts - trace_start()) / 50000000 b, dur from sched where utid != 0) group by b order by b;
-- shape: mode per group
select utid, cpu, n from (select utid, cpu, count(*) n, row_number() over (partition by utid order by count(*) desc, cpu) r from sched group by utid, cpu) where r = 1 order by n desc, utid limit 30;
-- shape: compound of joins ordered
select name, d, 'run' k from (select t.name, sum(s.dur) d from sched s join thread t using (utid) group by t.utid) union all select name, d, 'wait' from (select t.name, sum(s.dur) d from thread_state s join thread t using (utid) where s.state = 'R' group by t.utid) order by d desc, name, k limit 50;
-- shape: sched with previous of the cpu by self join
select count(*), sum(b.ts - (a.ts + a.dur)) from sched a join sched b on b.cpu = a.cpu and b.ts = a.ts + a.dur where a.utid != b.utid;
-- shape: two counts by filter
select cpu, count(*) filter (where dur > 1000000) long, count(*) filter (where dur <= 1000000) short, avg(dur) filter (where utid != 0) from sched group by cpu order by cpu;
-- shape: iif and nullif sums
select utid, sum(iif(dur > 100000, dur, 0)) * 1.0 / nullif(sum(dur), 0) r from sched group by utid order by r desc, utid limit 20;
-- shape: window over groups
select utid, cpu, d, d * 1.0 / sum(d) over (partition by utid) share, rank() over (partition by cpu order by d desc) rk from (select utid, cpu, sum(dur) d from sched group by 1, 2) order by d desc, utid, cpu limit 50;
-- shape: lookups of names in list
select s.id, (select name from thread t where t.utid = s.utid) n, (select p.name from process p join thread t using (upid) where t.utid = s.utid) p from sched s where s.dur > 100000 order by s.id;
-- shape: max per second then join back
select s.ts, s.dur, s.utid from sched s join (select (ts - trace_start()) / 1000000000 b, max(dur) m from sched where utid != 0 group by 1) x on (s.ts - trace_start()) / 1000000000 = x.b and s.dur = x.m where s.utid != 0 order by s.ts;
-- shape: slice of ids in a list
select * from slice where id in (1, 5, 9, 100, 1000, 10000, 100000);
-- shape: between two times
select count(*), sum(dur) from thread_state where ts between trace_start() + 1000000000 and trace_start() + 2000000000 and state = 'Running';
-- shape: concat and group by
select t.name || ' ' || t.tid k, count(*), sum(s.dur) from sched s join thread t using (utid) group by k order by 3 desc, k limit 30;
-- shape: slices: percentiles having
select name, count(*) n, percentile(dur, 50), percentile(dur, 99) from slice group by name having n > 10 order by 4 desc, name;
-- shape: slices: nested by kin
select a.name, count(*), sum(d.dur) from slice a join descendant_slice(a.id) d where a.depth = 0 group by 1 order by 3 desc, 1 limit 20;
-- shape: slices: tree by depth
select depth, name, count(*), sum(dur), max(dur) from slice group by depth, name order by depth, 4 desc, name;
-- shape: args display
select key, display_value, count(*) from slice join args using (arg_set_id) group by 1, 2 order by 3 desc, 1, 2 limit 30;
-- shape: args of a key by value
select a.string_value, a.int_value, count(*), sum(s.dur) from slice s join args a using (arg_set_id) where a.key = 'debug.request' group by 1, 2 order by 3 desc, 1, 2 limit 20;
-- shape: extract_arg grouped
select extract_arg(arg_set_id, (select key from args limit 1)) k, count(*), sum(dur) from slice group by k order by 2 desc, 1 limit 20;
-- shape: keys counted
select key, count(*), count(distinct arg_set_id) from args group by key order by 2 desc, 1;
-- shape: self time join
select s.name, sum(s.dur) total, sum(s.dur - coalesce(c.d, 0)) self from slice s left join (select parent_id, sum(dur) d from slice where parent_id is not null group by parent_id) c on c.parent_id = s.id group by s.name order by self desc, s.name limit 20;
-- shape: self time lookup
select name, sum(dur - ifnull((select sum(dur) from slice c where c.parent_id = s.id), 0)) self from slice s group by 1 order by 2 desc, 1;
-- shape: top five of each name
select name, ts, dur from (select name, ts, dur, id, row_number() over (partition by name order by dur desc, id) r from slice) where r <= 5 order by name, dur desc, id;
-- shape: flows durations
select o.name, i.name, count(*), avg(i.ts - o.ts), max(i.ts - o.ts) from flow f join slice o on o.id = f.slice_out join slice i on i.id = f.slice_in group by 1, 2 order by 3 desc, 1, 2 limit 20;
-- shape: flows across threads
select ot.utid, it.utid, count(*) from flow f join slice o on o.id = f.slice_out join slice i on i.id = f.slice_in join thread_track ot on ot.id = o.track_id join thread_track it on it.id = i.track_id where ot.utid != it.utid group by 1, 2 order by 3 desc, 1, 2;
-- shape: following flows
select count(*), sum(i.dur) from slice s join following_flow(s.id) f join slice i on i.id = f.slice_in where s.depth = 0;
-- shape: slices with category
select category, count(*), sum(dur), count(distinct name) from slice group by category order by 2 desc, 1;
-- shape: counter spans with slices
select t.name, count(*), avg(c.value) from (select ts, track_id, value, lead(ts) over (partition by track_id order by ts) - ts dur from counter) c join track t on t.id = c.track_id where c.dur > 0 group by 1 order by 2 desc, 1;
-- shape: counter at slice start
select s.name, avg((select c.value from counter c where c.ts <= s.ts order by c.ts desc limit 1)) from slice s where s.depth = 0 group by 1 order by 1;
-- shape: thread_slice by thread
include perfetto module slices.with_context;
select thread_name, name, count(*), sum(dur), sum(thread_dur) from thread_slice group by 1, 2 order by 4 desc, 1, 2 limit 30;
-- shape: gaps between top slices
select track_id, count(*), avg(g), max(g) from (select track_id, ts - lag(ts + dur) over (partition by track_id order by ts) g from slice where depth = 0) where g is not null group by 1 order by 1;
-- shape: ancestors named
select s.name, a.name, count(*) from slice s join ancestor_slice(s.id) a where s.depth >= 2 group by 1, 2 order by 3 desc, 1, 2 limit 20;
-- shape: recursive depth texts
with recursive tree(id, path, depth) as (select id, name, 0 from slice where parent_id is null union all select s.id, path || '/' || s.name, tree.depth + 1 from tree join slice s on s.parent_id = tree.id) select path, count(*) from tree group by path order by 2 desc, 1 limit 20;
-- shape: slices per ms bucket
select ts / 1000000 b, count(*), sum(dur), count(distinct track_id) from slice group by b order by b;
-- shape: name like and dur
select name, count(*) from slice where name like '%a%' and dur between 1000 and 100000 group by name order by 2 desc, 1;
-- shape: instants and spans
select case when dur = 0 then 'instant' when dur < 0 then 'open' else 'span' end k, count(*) from slice group by k order by k;
-- shape: all slices by dur
select id, name, dur from slice order by dur desc, id;
-- shape: row values of args
select a.arg_set_id, group_concat(a.key || '=' || coalesce(a.display_value, ''), ';') from args a group by a.arg_set_id order by a.arg_set_id;
-- shape: slice args pivot
select s.name, max(case when a.key like 'debug.%' then a.int_value end), count(*) from slice s left join args a using (arg_set_id) group by 1 order by 3 desc, 1;
-- shape: sibling order
select rn, count(*), avg(dur) from (select dur, row_number() over (partition by parent_id order by ts) rn from slice where parent_id is not null) group by rn order by rn limit 50;
-- shape: nested same name
select count(*) from slice c join slice p on p.id = c.parent_id where p.name = c.name;
-- shape: critical parent share
select p.name, sum(c.dur) * 1.0 / sum(p.dur) from slice c join slice p on p.id = c.parent_id where p.dur > 0 group by 1 order by 2 desc, 1;
-- shape: parent lookups of rows
select s.id, s.name, (select p.name from slice p where p.id = s.parent_id) pn, (select count(*) from slice c where c.parent_id = s.id) kids from slice s order by s.dur desc, s.id limit 100;
-- shape: running slices at a time
select t.ts, (select count(*) from slice s where s.ts <= t.ts and s.ts + s.dur > t.ts) n from (select ts from slice where depth = 0 and id % 1000 = 0) t order by 1;
-- shape: intersect of busy and idle by cpu
include perfetto module intervals.intersect;
select cpu, count(*), sum(dur) from _interval_intersect!(((select id, ts, dur, cpu from sched where utid != 0 and dur > 0), (select id, ts, dur, cpu from sched where utid = 0 and dur > 0)), (cpu)) group by cpu order by cpu;
