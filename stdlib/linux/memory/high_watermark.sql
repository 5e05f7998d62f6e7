-- The most memory that processes have had so far.

INCLUDE PERFETTO MODULE linux.memory.process;
INCLUDE PERFETTO MODULE counters.intervals;

CREATE PERFETTO TABLE _memory_rss_high_watermark_per_process_table AS
SELECT ts, dur, track_id AS upid, CAST(value AS INT) AS rss_high_watermark
FROM counter_leading_intervals!((
  SELECT 0 AS id, ts, upid AS track_id, max(rss) OVER (PARTITION BY upid ORDER BY ts) AS value
  FROM (
    SELECT ts, upid, coalesce(file_rss, 0) + coalesce(anon_rss, 0) + coalesce(shmem_rss, 0) AS rss
    FROM _memory_rss_and_swap_per_process_table
  )
));

-- Each process's highest resident memory up to each moment.
CREATE PERFETTO VIEW memory_rss_high_watermark_per_process(
  -- When it was reached.
  ts TIMESTAMP,
  -- How long it stood.
  dur DURATION,
  -- Row of process.
  upid JOINID(process.id),
  -- The kernel's number of the process.
  pid LONG,
  -- Name of the process.
  process_name STRING,
  -- Resident memory in bytes.
  rss_high_watermark LONG
) AS
SELECT h.ts, h.dur, h.upid, p.pid, p.name AS process_name, h.rss_high_watermark
FROM _memory_rss_high_watermark_per_process_table AS h
JOIN process AS p USING (upid);
