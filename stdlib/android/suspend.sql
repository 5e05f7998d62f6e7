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
    SELECT s.ts, s.dur, t.machine_id, t.name = 'Suspend/Resume Minimal' AS is_minimal
    FROM slice AS s
    JOIN track AS t ON t.id = s.track_id
    WHERE
      t.name = 'Suspend/Resume Minimal'
      OR (t.name = 'Suspend/Resume Latency' AND s.name IN ('syscore_resume(0)', 'timekeeping_freeze(0)') AND s.dur != -1)
  ),
  -- The detailed ones count where there are no others. Those that reach into the next one lost their end: they do not count.
  sleeps AS (
    SELECT ts, dur, machine_id
    FROM (
      SELECT a.*, lead(a.ts, 1, trace_end()) OVER (PARTITION BY a.machine_id ORDER BY a.ts) AS next_ts
      FROM all_sleeps AS a
      WHERE a.is_minimal OR a.machine_id NOT IN (SELECT m.machine_id FROM all_sleeps AS m WHERE m.is_minimal)
    )
    WHERE dur > 0 AND next_ts - ts - dur >= 0
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
SELECT ts, dur, machine_id, power_state
FROM (
  SELECT ts, lead(ts, 1, trace_end()) OVER (PARTITION BY machine_id ORDER BY ts) - ts AS dur, power_state, machine_id
  FROM edges
)
WHERE dur > 0
ORDER BY ts;

-- A span's length by the monotonic clock, which stands still while the phone is asleep.
CREATE PERFETTO FUNCTION _extract_duration_without_suspend(
  ts TIMESTAMP,
  dur DURATION
)
RETURNS LONG AS
SELECT to_monotonic($ts + $dur) - to_monotonic($ts);
