-- CPU time and cycles of slices on threads.

INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE linux.cpu.utilization.slice;
INCLUDE PERFETTO MODULE slices.with_context;

-- How long each slice's thread ran while it was open.
CREATE PERFETTO TABLE thread_slice_cpu_time(
  -- Row of slice.
  id JOINID(slice.id),
  -- Name of the slice.
  name STRING,
  -- Row of thread.
  utid JOINID(thread.id),
  -- Name of the thread.
  thread_name STRING,
  -- Row of process.
  upid JOINID(process.id),
  -- Name of the process.
  process_name STRING,
  -- Time on a CPU.
  cpu_time LONG
) AS
SELECT
  s.id,
  s.name,
  s.utid,
  s.thread_name,
  s.upid,
  s.process_name,
  sum(ii.dur) AS cpu_time
FROM _interval_intersect!(
  (
    (SELECT id, ts, dur, utid FROM thread_slice WHERE utid > 0 AND dur > 0),
    (SELECT id, ts, dur, utid FROM sched WHERE dur > 0)
  ),
  (utid)
) AS ii
JOIN thread_slice AS s ON s.id = ii.id_0
GROUP BY s.id
ORDER BY s.id;

-- How many cycles each slice's thread took while it was open.
CREATE PERFETTO VIEW thread_slice_cpu_cycles(
  -- Row of slice.
  id JOINID(slice.id),
  -- Name of the slice.
  name STRING,
  -- Row of thread.
  utid JOINID(thread.id),
  -- Name of the thread.
  thread_name STRING,
  -- Row of process.
  upid JOINID(process.id),
  -- Name of the process.
  process_name STRING,
  -- Thousandths of cycles; NULL when the frequency is not known.
  millicycles LONG,
  -- Millions of cycles.
  megacycles LONG
) AS
SELECT id, name, utid, thread_name, upid, process_name, millicycles, megacycles
FROM cpu_cycles_per_thread_slice;
