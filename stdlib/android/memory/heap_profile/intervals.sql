-- The time between dumps of a heap profiler.

-- Each dump with the time since the one before, and what was allocated: (id, ts, dur, upid, heap_name, retained, allocated,
-- delta).
CREATE PERFETTO TABLE _android_heap_profile_intervals AS
WITH
  dumps AS (
    SELECT
      min(id) AS id,
      ts,
      upid,
      heap_name,
      sum(size) AS delta,
      sum(max(size, 0)) AS allocated
    FROM heap_profile_allocation
    GROUP BY upid, heap_name, ts
  )
SELECT
  id,
  lag(ts, 1, trace_start()) OVER one AS ts,
  ts - lag(ts, 1, trace_start()) OVER one AS dur,
  upid,
  heap_name,
  sum(delta) OVER one AS retained,
  allocated,
  delta
FROM dumps
WINDOW one AS (PARTITION BY upid, heap_name ORDER BY ts);
