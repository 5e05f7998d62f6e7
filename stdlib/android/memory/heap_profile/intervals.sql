-- The time between dumps of a heap profiler.

-- Each dump of a heap with the time that it speaks of: (id, upid, heap_name, ts, dur, retained, allocated, delta). `allocated`
-- are the bytes asked for, `delta` what was asked for less what was freed, `retained` the same of the call stacks that
-- asked for more than they freed.
CREATE PERFETTO TABLE _android_heap_profile_intervals AS
WITH
  of_callsite AS (
    SELECT
      upid,
      heap_name,
      ts AS ts_end,
      sum(max(size, 0)) AS allocated,
      sum(size) AS delta,
      iif(sum(count) > 0, sum(size), 0) AS retained
    FROM heap_profile_allocation
    GROUP BY upid, heap_name, ts, callsite_id
  ),
  dumps AS (
    SELECT upid, heap_name, ts_end, sum(retained) AS retained, sum(allocated) AS allocated, sum(delta) AS delta
    FROM of_callsite
    GROUP BY upid, heap_name, ts_end
  ),
  -- a recording that does not say when a dump began: after the one before it
  begun AS (
    SELECT
      h.id,
      d.*,
      iif(
        h.ts < d.ts_end,
        h.ts,
        min(d.ts_end, 1 + coalesce(lag(d.ts_end) OVER (PARTITION BY d.upid, d.heap_name ORDER BY d.ts_end), trace_start()))
      ) AS ts
    FROM dumps AS d
    JOIN __intrinsic_heap_profile AS h
      ON h.upid = d.upid AND h.ts_end = d.ts_end AND coalesce(h.heap_name, 'unknown') = d.heap_name
  )
SELECT id, upid, heap_name, ts, ts_end - ts AS dur, retained, allocated, delta
FROM begun;
