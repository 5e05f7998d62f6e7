select (ts - (select start_ts from trace_bounds)) / 1000000000 as second, count(*), sum(dur) from sched group by 1 order by 1;
