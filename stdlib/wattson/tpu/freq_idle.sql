-- Frequency of the TPU.

INCLUDE PERFETTO MODULE counters.intervals;
INCLUDE PERFETTO MODULE intervals.overlap;

-- The spans in which the TPU kept its frequency: (ts, dur, freq, cluster).
CREATE PERFETTO TABLE _tpu_freq AS
SELECT i.ts, i.dur, CAST(i.value AS INT) AS freq, i.track_id AS cluster
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, c.track_id, c.value
  FROM counter AS c
  JOIN track AS t ON t.id = c.track_id
  WHERE t.name GLOB 'TPU*frequency*' OR t.name GLOB '*tpu*freq*'
)) AS i;

-- How many requests the TPU handles at once: (ts, dur, requests), by the slices on its tracks.
CREATE PERFETTO TABLE _tpu_requests_count AS
SELECT ts, lead(ts, 1, trace_end()) OVER (ORDER BY ts) - ts AS dur, value AS requests
FROM intervals_overlap_count!(
  (
    SELECT s.ts, s.dur
    FROM slice AS s
    JOIN track AS t ON t.id = s.track_id
    WHERE t.name GLOB 'TPU*request*' AND s.dur != 0
  ),
  ts,
  dur
);
