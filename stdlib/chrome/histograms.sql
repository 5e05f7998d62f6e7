-- Samples of Chrome's histograms (category disabled-by-default-histogram_samples).

-- One row a sample, those of threads first; one of a track of a process has no thread.
CREATE PERFETTO TABLE chrome_histograms(
  -- Name of the histogram.
  name STRING,
  -- The sample.
  value LONG,
  -- When it was taken.
  ts TIMESTAMP,
  -- Name of the thread.
  thread_name STRING,
  -- Row of thread.
  utid LONG,
  -- The kernel's number of the thread.
  tid LONG,
  -- Name of the process.
  process_name STRING,
  -- Row of process.
  upid LONG,
  -- The kernel's number of the process.
  pid LONG
) AS
WITH
  samples AS (
    SELECT
      extract_arg(arg_set_id, 'chrome_histogram_sample.name') AS name,
      extract_arg(arg_set_id, 'chrome_histogram_sample.sample') AS value,
      ts,
      track_id
    FROM slice
    WHERE name = 'HistogramSample' AND category = 'disabled-by-default-histogram_samples'
  )
SELECT s.name, s.value, s.ts, t.name AS thread_name, t.utid, t.tid, p.name AS process_name, p.upid, p.pid
FROM samples AS s
JOIN thread_track AS k ON k.id = s.track_id
JOIN thread AS t ON t.utid = k.utid
JOIN process AS p ON p.upid = t.upid
UNION ALL
SELECT s.name, s.value, s.ts, NULL, NULL, NULL, p.name, p.upid, p.pid
FROM samples AS s
JOIN process_track AS k ON k.id = s.track_id
JOIN process AS p ON p.upid = k.upid;
