-- trace: linux-zstd.pftrace
-- Packets inside compressed packets.
select (select count(*) from ftrace_event) as events, (select count(*) from sched) as slices,
       (select count(*) from thread) as threads, (select end_ts - start_ts from trace_bounds) as span;
