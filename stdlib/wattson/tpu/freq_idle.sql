-- Frequency of the TPU.

INCLUDE PERFETTO MODULE counters.intervals;

-- The spans in which the TPU kept its frequency: (ts, dur, freq, cluster).
CREATE PERFETTO TABLE _tpu_freq AS
SELECT i.ts, i.dur, CAST(i.value AS INT) AS freq, i.track_id AS cluster
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, c.track_id, c.value
  FROM counter AS c
  JOIN track AS t ON t.id = c.track_id
  WHERE t.name GLOB 'TPU*frequency*' OR t.name GLOB '*tpu*freq*'
)) AS i;
