-- Memory of GPUs by process.

INCLUDE PERFETTO MODULE counters.intervals;

-- The spans in which it stayed the same, in bytes.
CREATE PERFETTO TABLE android_gpu_memory_per_process(
  -- When the value began.
  ts TIMESTAMP,
  -- Duration of the value in nanoseconds.
  dur DURATION,
  -- Row of process.
  upid JOINID(process.id),
  -- Bytes of GPU memory.
  gpu_memory LONG
) AS
SELECT i.ts, i.dur, t.upid, CAST(i.value AS INT) AS gpu_memory
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, c.track_id, c.value
  FROM counter AS c
  JOIN track AS t ON t.id = c.track_id
  WHERE t.name = 'GPU Memory'
)) AS i
JOIN process_counter_track AS t ON t.id = i.track_id;
