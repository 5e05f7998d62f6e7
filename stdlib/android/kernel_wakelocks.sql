-- Locks that keep a phone awake, as the kernel counts them.

INCLUDE PERFETTO MODULE android.suspend;
INCLUDE PERFETTO MODULE counters.intervals;

-- Tracks of wake locks.
CREATE PERFETTO TABLE _kernel_wakelock_track AS
SELECT
  id,
  name,
  extract_arg(dimension_arg_set_id, 'wakelock_type') AS type
FROM track
WHERE type = 'android_kernel_wakelock';

-- Time held between samples; NULL behind the last one.
CREATE PERFETTO TABLE _android_kernel_wakelocks_base AS
SELECT i.ts, i.ts AS original_ts, i.dur, t.name, hash(t.name) AS name_int, t.type, i.next_value - i.value AS held_dur
FROM counter_leading_intervals!((
  SELECT id, ts, track_id, value FROM counter WHERE track_id IN (SELECT id FROM _kernel_wakelock_track)
)) AS i
JOIN _kernel_wakelock_track AS t ON t.id = i.track_id;

CREATE VIRTUAL TABLE _android_kernel_wakelocks_joined
USING span_join(_android_kernel_wakelocks_base PARTITIONED name_int, android_suspend_state);

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
WITH
  spans AS (
    SELECT
      original_ts AS ts,
      name,
      type,
      held_dur,
      sum(dur) AS dur,
      sum(iif(power_state = 'awake', dur, 0)) AS awake_dur
    FROM _android_kernel_wakelocks_joined
    GROUP BY original_ts, name, type, held_dur
  )
SELECT
  ts,
  dur,
  awake_dur,
  name,
  type,
  cast_int!(held_dur) AS held_dur,
  max(min(held_dur / awake_dur, 1.0), 0.0) AS held_ratio
FROM spans;
