-- Garbage collections of the Java heap: how much they freed and what their thread did meanwhile.

INCLUDE PERFETTO MODULE counters.intervals;
INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE slices.with_context;

-- Collections; a phase of compaction that follows on the track belongs to the one before.
CREATE PERFETTO TABLE _gc_slice AS
SELECT
  id AS gc_id,
  name AS gc_name,
  ts,
  iif(dur < 0, trace_end() - ts, dur) + iif(next_name = 'CompactionPhase', next_dur, 0) AS dur,
  utid,
  tid,
  upid,
  pid,
  thread_name,
  process_name
FROM (
  SELECT
    *,
    lead(name) OVER (PARTITION BY track_id ORDER BY ts) AS next_name,
    lead(dur) OVER (PARTITION BY track_id ORDER BY ts) AS next_dur
  FROM thread_slice
  WHERE depth = 0
)
WHERE name GLOB '*concurrent*GC';

-- Sizes of the heaps in KB.
CREATE PERFETTO TABLE _gc_heap_counter AS
SELECT i.id, i.ts, i.dur, t.upid, i.value
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, c.track_id, c.value
  FROM counter AS c
  JOIN process_counter_track AS t ON t.id = c.track_id
  WHERE t.name = 'Heap size (KB)'
)) AS i
JOIN process_counter_track AS t ON t.id = i.track_id;

-- The collections.
CREATE PERFETTO TABLE android_garbage_collection_events(
  -- The kernel's number of the thread.
  tid LONG,
  -- The kernel's number of the process.
  pid LONG,
  -- Row of thread.
  utid JOINID(thread.id),
  -- Row of process.
  upid JOINID(process.id),
  -- Name of the thread.
  thread_name STRING,
  -- Name of the process.
  process_name STRING,
  -- What set it off, or how much it covers: native_alloc, alloc, explicit, collector_transition, young, full.
  gc_type STRING,
  -- Was the heap compacted?
  is_mark_compact LONG,
  -- Difference of the two sizes, in MB.
  reclaimed_mb DOUBLE,
  -- Least size of the heap while it ran or right behind it, in MB.
  min_heap_mb DOUBLE,
  -- Greatest size of the heap while it ran or right behind it, in MB.
  max_heap_mb DOUBLE,
  -- The collection: row of slice.
  gc_id LONG,
  -- Start of the collection.
  gc_ts TIMESTAMP,
  -- Length of the collection, with the compaction behind it.
  gc_dur DURATION,
  -- Time its thread ran.
  gc_running_dur DURATION,
  -- Time its thread waited for a processor.
  gc_runnable_dur DURATION,
  -- Time its thread slept uninterruptibly for storage.
  gc_unint_io_dur DURATION,
  -- Time its thread slept uninterruptibly, not for storage.
  gc_unint_non_io_dur DURATION,
  -- Time its thread slept interruptibly.
  gc_int_dur LONG
) AS
WITH
  -- sizes while it ran, and the first one behind it
  sizes AS (
    SELECT i.id_0 AS gc_id, h.value
    FROM _interval_intersect!((
      (SELECT gc_id AS id, ts, dur, upid FROM _gc_slice),
      (SELECT id, ts, dur, upid FROM _gc_heap_counter)
    ), (upid)) AS i
    JOIN _gc_heap_counter AS h ON h.id = i.id_1
    UNION ALL
    SELECT
      g.gc_id,
      (SELECT h.value FROM _gc_heap_counter AS h WHERE h.upid = g.upid AND h.ts >= g.ts + g.dur ORDER BY h.ts LIMIT 1)
    FROM _gc_slice AS g
  ),
  heap AS (
    SELECT gc_id, min(value) / 1e3 AS min_heap_mb, max(value) / 1e3 AS max_heap_mb FROM sizes GROUP BY gc_id
  ),
  states AS (
    SELECT
      i.id_0 AS gc_id,
      sum(iif(t.state = 'Running', i.dur, 0)) AS running,
      sum(iif(t.state IN ('R', 'R+'), i.dur, 0)) AS runnable,
      sum(iif(t.state = 'D' AND t.io_wait, i.dur, 0)) AS waiting_io,
      sum(iif(t.state = 'D' AND NOT t.io_wait, i.dur, 0)) AS waiting,
      sum(iif(t.state = 'S', i.dur, 0)) AS sleeping
    FROM _interval_intersect!((
      (SELECT gc_id AS id, ts, dur, utid FROM _gc_slice),
      (SELECT id, ts, iif(dur < 0, trace_end() - ts, dur) AS dur, utid FROM thread_state)
    ), (utid)) AS i
    JOIN thread_state AS t ON t.id = i.id_1
    GROUP BY i.id_0
  )
SELECT
  g.tid,
  g.pid,
  g.utid,
  g.upid,
  g.thread_name,
  g.process_name,
  CASE
    WHEN g.gc_name GLOB '*NativeAlloc*' THEN 'native_alloc'
    WHEN g.gc_name GLOB '*Alloc*' THEN 'alloc'
    WHEN g.gc_name GLOB '*young*' THEN 'young'
    WHEN g.gc_name GLOB '*CollectorTransition*' THEN 'collector_transition'
    WHEN g.gc_name GLOB '*Explicit*' THEN 'explicit'
    ELSE 'full'
  END AS gc_type,
  g.gc_name GLOB '*mark compact*' AS is_mark_compact,
  h.max_heap_mb - h.min_heap_mb AS reclaimed_mb,
  h.min_heap_mb,
  h.max_heap_mb,
  g.gc_id,
  g.ts AS gc_ts,
  g.dur AS gc_dur,
  coalesce(s.running, 0) AS gc_running_dur,
  coalesce(s.runnable, 0) AS gc_runnable_dur,
  coalesce(s.waiting_io, 0) AS gc_unint_io_dur,
  coalesce(s.waiting, 0) AS gc_unint_non_io_dur,
  coalesce(s.sleeping, 0) AS gc_int_dur
FROM _gc_slice AS g
JOIN heap AS h USING (gc_id)
LEFT JOIN states AS s USING (gc_id)
-- without a size of the heap nothing can be said about it
WHERE h.max_heap_mb IS NOT NULL;
