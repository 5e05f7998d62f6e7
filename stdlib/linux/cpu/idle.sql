-- Idle states of CPUs.

INCLUDE PERFETTO MODULE counters.intervals;

-- The spans in which each CPU was in one idle state.
CREATE PERFETTO TABLE cpu_idle_counters(
  -- Row of counter.
  id LONG,
  -- Row of track.
  track_id JOINID(track.id),
  -- When the idle state began.
  ts TIMESTAMP,
  -- Duration of the idle state in nanoseconds.
  dur DURATION,
  -- State: 0 the lightest; -1 awake.
  idle LONG,
  -- Number of the CPU on its machine.
  cpu LONG
) AS
SELECT
  i.id,
  i.track_id,
  i.ts,
  i.dur,
  -- the kernel says "awake" with the largest 32-bit number
  iif(i.value = 4294967295, -1, CAST(i.value AS INT)) AS idle,
  t.cpu
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, c.track_id, c.value
  FROM counter AS c
  JOIN cpu_counter_track AS t ON t.id = c.track_id
  WHERE t.type = 'cpu_idle'
)) AS i
JOIN cpu_counter_track AS t ON t.id = i.track_id;
