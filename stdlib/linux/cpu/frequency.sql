-- Frequencies of CPUs.

INCLUDE PERFETTO MODULE counters.intervals;

-- The spans in which each CPU's frequency stayed the same.
CREATE PERFETTO TABLE cpu_frequency_counters(
  -- Row of counter.
  id LONG,
  -- Row of track.
  track_id JOINID(track.id),
  -- When the frequency began.
  ts TIMESTAMP,
  -- Duration of the frequency in nanoseconds.
  dur DURATION,
  -- Frequency in kHz.
  freq LONG,
  -- Number of the CPU among all machines.
  ucpu LONG,
  -- Number of the CPU on its machine.
  cpu LONG
) AS
SELECT
  i.id,
  i.track_id,
  i.ts,
  i.dur,
  CAST(i.value AS INT) AS freq,
  _ucpu!(t.machine_id, t.cpu) AS ucpu,
  t.cpu
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, c.track_id, c.value
  FROM counter AS c
  JOIN cpu_counter_track AS t ON t.id = c.track_id
  WHERE t.type = 'cpu_frequency'
)) AS i
JOIN cpu_counter_track AS t ON t.id = i.track_id;
