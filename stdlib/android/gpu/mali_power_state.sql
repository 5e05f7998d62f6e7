-- Power state of Mali GPUs.

INCLUDE PERFETTO MODULE counters.intervals;

-- The spans in which the GPU kept its power state.
CREATE PERFETTO TABLE android_mali_gpu_power_state(
  -- When the power state began.
  ts TIMESTAMP,
  -- Duration of the power state in nanoseconds.
  dur DURATION,
  -- The state.
  power_state LONG
) AS
SELECT i.ts, i.dur, CAST(i.value AS INT) AS power_state
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, c.track_id, c.value
  FROM counter AS c
  JOIN counter_track AS t ON t.id = c.track_id
  WHERE t.name = 'mali_gpu_power_state'
)) AS i;
