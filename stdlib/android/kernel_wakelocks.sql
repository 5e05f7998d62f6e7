-- Locks that keep a phone awake, as the kernel counts them.

INCLUDE PERFETTO MODULE android.suspend;
INCLUDE PERFETTO MODULE counters.intervals;

-- Tracks of wake locks.
CREATE PERFETTO TABLE _kernel_wakelock_track AS
SELECT
  id,
  extract_arg(dimension_arg_set_id, 'wakelock_name') AS name,
  extract_arg(dimension_arg_set_id, 'wakelock_type') AS type
FROM track
WHERE type = 'android_kernel_wakelock';

-- Time held between samples.
CREATE PERFETTO TABLE _android_kernel_wakelocks_base AS
SELECT
  c.ts,
  lead(c.ts) OVER one - c.ts AS dur,
  t.name,
  t.type,
  CAST(lead(c.value) OVER one - c.value AS INT) AS held_dur
FROM counter AS c
JOIN _kernel_wakelock_track AS t ON t.id = c.track_id
WINDOW one AS (PARTITION BY c.track_id ORDER BY c.ts);

-- Time held between samples, and its part of the time awake.
CREATE PERFETTO TABLE android_kernel_wakelocks(
  -- When the span between the samples began.
  ts TIMESTAMP,
  -- Duration of the span between the samples in nanoseconds.
  dur DURATION,
  -- The part of it in which the machine was not suspended.
  awake_dur DURATION,
  -- Name of the lock.
  name STRING,
  -- Kernel's or native.
  type STRING,
  -- Time held.
  held_dur DURATION,
  -- Part of the time awake that it was held: 0 to 1.
  held_ratio DOUBLE
) AS
SELECT ts, dur, awake_dur, name, type, held_dur, max(min(held_dur * 1.0 / awake_dur, 1.0), 0.0) AS held_ratio
FROM (
  SELECT ts, dur, _extract_duration_without_suspend(ts, dur) AS awake_dur, name, type, held_dur
  FROM _android_kernel_wakelocks_base
  WHERE dur IS NOT NULL
);
