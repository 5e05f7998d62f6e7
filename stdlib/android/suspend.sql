-- When a phone was asleep.

-- Awake and suspended, one after the other.
CREATE PERFETTO TABLE android_suspend_state(
  -- When the state began.
  ts TIMESTAMP,
  -- Duration of the state in nanoseconds.
  dur DURATION,
  -- awake or suspended.
  power_state STRING,
  -- Row of machine.
  machine_id JOINID(machine.id)
) AS
WITH
  all_sleeps AS (
    SELECT s.ts, s.dur, t.machine_id, t.name = 'Suspend/Resume Minimal' OR t.type = 'suspend_resume_minimal' AS is_minimal
    FROM slice AS s
    JOIN track AS t ON t.id = s.track_id
    WHERE s.name IN ('syscore_resume(0)', 'timekeeping_freeze(0)') OR t.type = 'suspend_resume_minimal'
      OR t.name = 'Suspend/Resume Minimal'
  ),
  -- The detailed ones count where there are no others, those that overlap not.
  sleeps AS (
    SELECT ts, dur, machine_id
    FROM (
      SELECT a.*, lag(a.ts + a.dur) OVER (PARTITION BY a.machine_id ORDER BY a.ts) AS last_end
      FROM all_sleeps AS a
      WHERE a.is_minimal OR a.machine_id NOT IN (SELECT m.machine_id FROM all_sleeps AS m WHERE m.is_minimal)
    )
    WHERE dur > 0 AND ts >= coalesce(last_end, ts)
  ),
  edges AS (
    SELECT trace_start() AS ts, 'awake' AS power_state, id AS machine_id
    FROM machine
    WHERE id = 0 OR id IN (SELECT machine_id FROM sleeps)
    UNION ALL
    SELECT ts, 'suspended', machine_id FROM sleeps
    UNION ALL
    SELECT ts + dur, 'awake', machine_id FROM sleeps
  )
SELECT ts, dur, power_state, machine_id
FROM (
  SELECT ts, lead(ts, 1, trace_end()) OVER (PARTITION BY machine_id ORDER BY ts) - ts AS dur, power_state, machine_id
  FROM edges
)
WHERE dur > 0;

-- The part of a span in which the phone was awake.
CREATE PERFETTO FUNCTION _extract_duration_without_suspend(
  ts TIMESTAMP,
  dur DURATION
)
RETURNS LONG AS
SELECT $dur - coalesce(
  (
    SELECT sum(min(s.ts + s.dur, $ts + $dur) - max(s.ts, $ts))
    FROM android_suspend_state AS s
    WHERE s.power_state = 'suspended' AND s.ts < $ts + $dur AND s.ts + s.dur > $ts
  ),
  0
);
