-- What there is of each machine in the trace.

-- One row a machine: what was recorded, from when to when.
CREATE PERFETTO TABLE machine_overview(
  -- Row of machine.
  machine_id JOINID(machine.id),
  -- Name of the machine.
  name STRING,
  -- Release of its kernel.
  release STRING,
  -- Its CPUs.
  num_cpus LONG,
  -- Running spans.
  sched_count LONG,
  -- Ftrace events.
  ftrace_event_count LONG,
  -- Number of threads.
  thread_count LONG,
  -- Number of processes.
  process_count LONG,
  -- First running span.
  first_ts TIMESTAMP,
  -- End of the last one.
  last_ts TIMESTAMP,
  -- Snapshots of its clocks.
  clock_snapshot_count LONG
) AS
WITH
  s AS (
    SELECT _machine_of_ucpu!(ucpu) AS machine_id, count() AS n, min(ts) AS first_ts, max(ts + max(dur, 0)) AS last_ts
    FROM sched
    GROUP BY 1
  ),
  f AS (SELECT _machine_of_ucpu!(ucpu) AS machine_id, count() AS n FROM ftrace_event GROUP BY 1),
  t AS (SELECT machine_id, count() AS n FROM thread GROUP BY 1),
  p AS (SELECT machine_id, count() AS n FROM process GROUP BY 1),
  c AS (SELECT machine_id, count(DISTINCT snapshot_id) AS n FROM clock_snapshot GROUP BY 1)
SELECT
  m.id AS machine_id,
  m.name,
  m.release,
  m.num_cpus,
  coalesce(s.n, 0) AS sched_count,
  coalesce(f.n, 0) AS ftrace_event_count,
  coalesce(t.n, 0) AS thread_count,
  coalesce(p.n, 0) AS process_count,
  s.first_ts,
  s.last_ts,
  coalesce(c.n, 0) AS clock_snapshot_count
FROM machine AS m
LEFT JOIN s ON s.machine_id = m.id
LEFT JOIN f ON f.machine_id = m.id
LEFT JOIN t ON t.machine_id = m.id
LEFT JOIN p ON p.machine_id = m.id
LEFT JOIN c ON c.machine_id = m.id
ORDER BY m.id;
