-- trace: linux-deflate.pftrace
-- Functions, macros, tables and joins of spans.
create perfetto function to_ms(ns long) returns double as select $ns / 1e6;
create perfetto macro busy(cpu expr) returns tableorsubquery as (select ts, dur, ucpu, utid from sched where ucpu = $cpu and dur > 0);
create perfetto table a as select * from busy!(0);
create perfetto table halves as
select start_ts as ts, (end_ts - start_ts) / 2 as dur, 1 as half from trace_bounds
union all select start_ts + (end_ts - start_ts) / 2, (end_ts - start_ts) / 2, 2 from trace_bounds;
create virtual table joined using span_join(a, halves);
select half, count(*) as n, to_ms(sum(dur)) as busy_ms from joined group by half order by half;
