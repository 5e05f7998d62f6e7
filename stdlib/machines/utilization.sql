-- How busy each machine of the trace was.

INCLUDE PERFETTO MODULE linux.cpu.utilization.general;

-- Over the whole trace, one row a machine.
CREATE PERFETTO TABLE machine_cpu_utilization(
  -- Row of machine.
  machine_id JOINID(machine.id),
  -- Name of the machine.
  name STRING,
  -- CPUs that ran something.
  cpus LONG,
  -- Time on all CPUs together.
  busy_dur DURATION,
  -- Its part of the time of these CPUs, 0 to 1.
  utilization DOUBLE,
  -- The same counted in CPUs.
  unnormalized_utilization DOUBLE
) AS
SELECT
  m.id AS machine_id,
  m.name,
  count(DISTINCT s.ucpu) AS cpus,
  coalesce(sum(s.dur), 0) AS busy_dur,
  coalesce(sum(s.dur), 0) * 1.0 / (max(count(DISTINCT s.ucpu), 1) * max(trace_dur(), 1)) AS utilization,
  coalesce(sum(s.dur), 0) * 1.0 / max(trace_dur(), 1) AS unnormalized_utilization
FROM machine AS m
LEFT JOIN _sched_without_id AS s ON _machine_of_ucpu!(s.ucpu) = m.id
GROUP BY m.id;

-- In pieces of a given length, one row for each machine and piece.
CREATE PERFETTO FUNCTION machine_cpu_utilization_per_period(
  -- Length of a piece.
  interval LONG
)
RETURNS TABLE(
  -- Start of the piece.
  ts TIMESTAMP,
  -- Row of machine.
  machine_id JOINID(machine.id),
  -- Part of the time of the machine's CPUs, 0 to 1.
  utilization DOUBLE,
  -- The same counted in CPUs.
  unnormalized_utilization DOUBLE
) AS
WITH
  numbered AS (SELECT row_number() OVER () AS id, ts, dur, ucpu FROM _sched_without_id),
  cpus AS (SELECT _machine_of_ucpu!(ucpu) AS machine_id, count(DISTINCT ucpu) AS n FROM sched GROUP BY 1),
  pieces AS (
    SELECT ii.id_0 AS ts, ii.dur, _machine_of_ucpu!(n.ucpu) AS machine_id
    FROM _interval_intersect!(
      ((SELECT ts AS id, ts, ts_end - ts AS dur FROM _partitions($interval)), (SELECT id, ts, dur FROM numbered)),
      ()
    ) AS ii
    JOIN numbered AS n ON n.id = ii.id_1
  )
SELECT
  p.ts,
  c.machine_id,
  coalesce(sum(x.dur), 0) * 1.0 / ($interval * c.n) AS utilization,
  coalesce(sum(x.dur), 0) * 1.0 / $interval AS unnormalized_utilization
FROM (SELECT ts FROM _partitions($interval) WHERE ts < trace_end()) AS p
JOIN cpus AS c
LEFT JOIN pieces AS x ON x.ts = p.ts AND x.machine_id = c.machine_id
GROUP BY p.ts, c.machine_id
ORDER BY p.ts, c.machine_id;

-- The processes that took most CPU time, apart by machine.
CREATE PERFETTO TABLE machine_cpu_time_by_process(
  -- Row of machine.
  machine_id JOINID(machine.id),
  -- Row of process.
  upid JOINID(process.id),
  -- The kernel's number of the process.
  pid LONG,
  -- Name of the process.
  process_name STRING,
  -- Time on CPUs.
  cpu_dur DURATION
) AS
SELECT p.machine_id, p.upid, p.pid, p.name AS process_name, sum(s.dur) AS cpu_dur
FROM _sched_without_id AS s
JOIN thread AS t USING (utid)
JOIN process AS p USING (upid)
GROUP BY p.upid
ORDER BY cpu_dur DESC;
