-- The most memory that processes have had so far.

INCLUDE PERFETTO MODULE linux.memory.process;
INCLUDE PERFETTO MODULE counters.intervals;

CREATE PERFETTO TABLE _memory_rss_high_watermark_per_process_table AS
SELECT ts, lead(ts, 1, trace_end()) OVER (PARTITION BY upid ORDER BY ts) - ts AS dur, upid, rss_high_watermark
FROM (
  SELECT
    ts,
    upid,
    rss,
    max(rss) OVER (PARTITION BY upid ORDER BY ts ROWS UNBOUNDED PRECEDING) AS rss_high_watermark,
    max(rss) OVER (PARTITION BY upid ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
  FROM _memory_rss_and_swap_per_process_table
  WHERE rss IS NOT NULL
)
WHERE before IS NULL OR rss > before;

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
SELECT h.ts, h.dur, h.upid, p.pid, p.name AS process_name, CAST(h.rss_high_watermark AS INT) AS rss_high_watermark
FROM _memory_rss_high_watermark_per_process_table AS h
JOIN process AS p USING (upid);
