-- Idle states of the host's CPUs over the whole trace.

INCLUDE PERFETTO MODULE counters.intervals;
INCLUDE PERFETTO MODULE wattson.device_infos;
INCLUDE PERFETTO MODULE wattson.utils;

-- A row when the trace tells idle states.
CREATE PERFETTO VIEW _wattson_cpuidle_counters_exist AS
SELECT id FROM cpu_counter_track WHERE type = 'cpu_idle' AND machine_id = 0 LIMIT 1;

-- How much longer CPUs are awake than told when they come out of deep sleep.
CREATE PERFETTO VIEW _filtered_deep_idle_offsets AS
SELECT o.cpu, o.offset_ns
FROM _device_cpu_deep_idle_offsets AS o
JOIN _wattson_device AS d ON d.name = o.device;

-- Changes of the state: (ts, cpu, idle), -1 when awake. Where the trace does not tell states, a CPU that runs nothing is in the
-- deepest, from the first change on.
CREATE PERFETTO TABLE _unified_idle_state AS
SELECT i.ts, t.cpu, iif(i.value = 4294967295, -1, cast_int!(i.value)) AS idle
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, c.track_id, c.value
  FROM counter AS c
  JOIN cpu_counter_track AS t ON t.id = c.track_id
  WHERE t.type = 'cpu_idle' AND t.machine_id = 0
)) AS i
JOIN cpu_counter_track AS t ON t.id = i.track_id
UNION ALL
SELECT ts, cpu, idle
FROM (
  SELECT ts, cpu, idle, lag(idle, 1, idle) OVER (PARTITION BY cpu ORDER BY ts) AS before
  FROM (
    SELECT s.ts, s.ucpu AS cpu, iif(t.is_idle, (SELECT idle FROM _deepest_idle), -1) AS idle
    FROM sched AS s
    JOIN thread AS t USING (utid)
    WHERE s.ucpu < _ucpu!(1, 0) AND NOT EXISTS (SELECT 1 FROM _wattson_cpuidle_counters_exist)
  )
)
WHERE idle != before;

-- The spans of the states: (ts, dur, cpu, idle), as the model tells them apart; a CPU that comes out of deep sleep is awake a bit earlier,
-- but not before it went to sleep.
CREATE PERFETTO TABLE _adjusted_deep_idle AS
WITH
  states AS (
    SELECT
      s.*,
      lag(s.idle) OVER (PARTITION BY s.cpu ORDER BY s.ts) AS before,
      lag(s.ts, 1, trace_start()) OVER (PARTITION BY s.cpu ORDER BY s.ts) AS ts_before
    FROM _unified_idle_state AS s
  ),
  moved AS (
    SELECT
      iif(
        s.before = 1 AND s.idle = -1,
        max(s.ts - coalesce(o.offset_ns, 0), s.ts_before),
        s.ts
      ) AS ts,
      s.cpu,
      coalesce(m.override_idle, s.idle) AS idle
    FROM states AS s
    LEFT JOIN _idle_state_map_override AS m ON m.nominal_idle IN (s.idle, iif(s.idle = -1, 4294967295, s.idle))
    LEFT JOIN _filtered_deep_idle_offsets AS o USING (cpu)
  )
SELECT ts, dur, cpu, value AS idle
FROM _gapless_by_cpu!((
  SELECT ts, lead(ts, 1, trace_end()) OVER (PARTITION BY cpu ORDER BY ts) - ts AS dur, cpu, idle AS value FROM moved
))
ORDER BY ts;
