-- Frequency and load of the TPU.

-- Its frequency, by the slices of the track DVFS, whose names begin with it and say which cluster is meant (2: both): (ts, dur, freq,
-- cluster). Before the first and behind the last it is 0.
CREATE PERFETTO TABLE _tpu_freq AS
WITH
  told AS (
    SELECT
      s.ts,
      s.dur,
      CAST(s.name AS INT) AS freq,
      CASE WHEN s.name GLOB '*Cluster Both*' THEN 2 WHEN s.name GLOB '*Cluster 0*' THEN 0 WHEN s.name GLOB '*Cluster 1*' THEN 1 ELSE 2 END
        AS cluster
    FROM slice AS s
    JOIN track AS t ON t.id = s.track_id
    WHERE t.name = 'DVFS'
  )
SELECT trace_start() AS ts, min(ts) - trace_start() AS dur, 0 AS freq, 0 AS cluster FROM told
UNION ALL
SELECT ts, dur, freq, cluster FROM told
UNION ALL
SELECT ts + dur, trace_end() - ts - dur, 0, 0 FROM told WHERE ts = (SELECT max(ts) FROM told);

-- How many requests it handles at once, up to 16: (ts, dur, requests), by the slices of the track "TPU Requests".
CREATE PERFETTO TABLE _tpu_requests_count AS
WITH
  requests AS (
    SELECT s.ts, s.ts + s.dur AS ts_end FROM slice AS s JOIN track AS t ON t.id = s.track_id WHERE t.name = 'TPU Requests'
  ),
  changes AS (
    SELECT trace_start() AS ts, 0 AS delta
    UNION ALL
    SELECT ts, 1 FROM requests
    UNION ALL
    SELECT ts_end, -1 FROM requests
  ),
  moments AS (SELECT ts, sum(delta) AS delta FROM changes GROUP BY ts)
SELECT ts, dur, max(0, min(16, n)) AS requests
FROM (
  SELECT ts, lead(ts, 1, trace_end()) OVER (ORDER BY ts) - ts AS dur, sum(delta) OVER (ORDER BY ts) AS n FROM moments
)
WHERE dur > 0;
