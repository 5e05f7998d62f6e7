-- Frequencies of GPUs.

INCLUDE PERFETTO MODULE counters.intervals;

-- The spans in which a GPU kept its frequency.
CREATE PERFETTO TABLE android_gpu_frequency(
  -- When the frequency began.
  ts TIMESTAMP,
  -- Duration of the frequency in nanoseconds.
  dur DURATION,
  -- Number of the GPU on its machine.
  gpu_id LONG,
  -- Frequency in kHz.
  gpu_freq LONG,
  -- The frequency before.
  prev_gpu_freq LONG,
  -- The frequency after.
  next_gpu_freq LONG
) AS
SELECT
  i.ts,
  i.dur,
  t.gpu_id,
  CAST(i.value AS INT) AS gpu_freq,
  CAST(i.value - i.delta_value AS INT) AS prev_gpu_freq,
  CAST(i.next_value AS INT) AS next_gpu_freq
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, c.track_id, c.value
  FROM counter AS c
  JOIN track AS t ON t.id = c.track_id
  WHERE t.type = 'gpu_frequency'
)) AS i
JOIN gpu_counter_track AS t ON t.id = i.track_id;
