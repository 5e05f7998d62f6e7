-- Garbage collections of the Java heap: how much they freed and what their thread did meanwhile.

INCLUDE PERFETTO MODULE android.startup.startups;
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

-- The size of the heap behind each collection: that of the first counter at or behind its end.
CREATE PERFETTO VIEW _gc_slice_with_final_heap AS
SELECT
  g.gc_id,
  g.upid,
  g.ts,
  g.dur,
  (SELECT h.value FROM _gc_heap_counter AS h WHERE h.upid = g.upid AND h.ts >= g.ts + g.dur ORDER BY h.ts LIMIT 1)
    AS final_heap
FROM _gc_slice AS g;

-- The smallest and the largest size of the heap from the start of each collection to behind its end.
CREATE PERFETTO TABLE _gc_slice_heap AS
SELECT gc_id, min(value) / 1e3 AS min_heap_mb, max(value) / 1e3 AS max_heap_mb
FROM (
  SELECT i.id_0 AS gc_id, h.value
  FROM _interval_intersect!((
    (SELECT gc_id AS id, ts, dur, upid FROM _gc_slice),
    (SELECT id, ts, dur, upid FROM _gc_heap_counter)
  ), (upid)) AS i
  JOIN _gc_heap_counter AS h ON h.id = i.id_1
  UNION ALL
  SELECT gc_id, final_heap FROM _gc_slice_with_final_heap
)
GROUP BY gc_id;

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
  -- Difference of the two sizes, in MB; NULL, as they are, where no size of the heap is known.
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
JOIN _gc_slice_heap AS h USING (gc_id)
LEFT JOIN states AS s USING (gc_id);

-- From the first size of a heap to the last one; NULL without.
CREATE PERFETTO VIEW _gc_stats_window AS
SELECT min(ts) AS ts, max(ts) - min(ts) AS dur
FROM _gc_heap_counter;

-- Sizes of the heaps over time, and how much was allocated: the sum of all growth.
CREATE PERFETTO TABLE _gc_heap_allocated AS
SELECT
  h.upid,
  sum(h.value / 1e3 * (min(h.ts + h.dur, w.ts + w.dur) - h.ts) / 1e9) AS heap_size_mbs,
  sum(max(coalesce(h.growth, 0), 0)) / 1e3 AS heap_allocated_mb
FROM (SELECT *, value - lag(value) OVER (PARTITION BY upid ORDER BY ts) AS growth FROM _gc_heap_counter) AS h
JOIN _gc_stats_window AS w
GROUP BY h.upid;

-- How much of the heaps was in use: what was left behind each collection, and what there was before it, times the time since the
-- collection before; since the start of the process, or of the sizes, for the first one.
CREATE PERFETTO TABLE _gc_heap_utilization AS
SELECT
  upid,
  sum(min_heap_mb * max(period, 0)) AS heap_live_mbs,
  sum(max_heap_mb * max(period, 0)) AS heap_total_mbs,
  sum(gc_running_dur) AS gc_running_dur
FROM (
  SELECT
    e.*,
    (
      e.gc_ts
      - coalesce(lag(e.gc_ts) OVER (PARTITION BY e.upid ORDER BY e.gc_ts), max(coalesce(p.start_ts, w.ts), w.ts))
    ) / 1e9 AS period
  FROM android_garbage_collection_events AS e
  JOIN process AS p USING (upid)
  JOIN _gc_stats_window AS w
)
GROUP BY upid;

-- The time of collections while applications started.
CREATE PERFETTO TABLE _gc_during_android_startup AS
SELECT e.upid, sum(i.dur) AS dur
FROM _interval_intersect!((
  (SELECT gc_id AS id, gc_ts AS ts, gc_dur AS dur FROM android_garbage_collection_events),
  (SELECT startup_id AS id, ts, dur FROM android_startups WHERE dur > 0)
), ()) AS i
JOIN android_garbage_collection_events AS e ON e.gc_id = i.id_0
GROUP BY e.upid;

-- What there is to add up, by process: its heap, its collections, and those while applications started.
CREATE PERFETTO VIEW _gc_process_sums AS
SELECT
  h.upid,
  h.heap_size_mbs,
  h.heap_allocated_mb,
  c.heap_live_mbs,
  c.heap_total_mbs,
  c.gc_running_dur,
  d.dur AS gc_during_android_startup_dur
FROM _gc_heap_allocated AS h
LEFT JOIN _gc_heap_utilization AS c USING (upid)
LEFT JOIN _gc_during_android_startup AS d USING (upid);

-- The quotients of such sums.
CREATE PERFETTO MACRO _gc_stats_of(
  -- As _gc_process_sums, or sums of it.
  sums TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH
    _gc_starts AS (SELECT sum(dur) AS total FROM android_startups WHERE dur > 0),
    _gc_rates AS (
      SELECT
        s.*,
        w.ts,
        w.dur,
        s.heap_size_mbs / w.dur * 1e9 AS heap_size_mb,
        s.heap_allocated_mb / w.dur * 1e9 AS heap_allocation_rate,
        s.heap_live_mbs / s.heap_total_mbs AS heap_utilization,
        s.gc_running_dur * 1.0 / w.dur AS gc_running_rate,
        t.total AS total_android_startup_dur,
        s.gc_during_android_startup_dur * 1.0 / t.total AS gc_during_android_startup_rate
      FROM $sums AS s
      JOIN _gc_stats_window AS w
      JOIN _gc_starts AS t
    )
  SELECT
    *,
    heap_allocation_rate * heap_utilization / (1 - heap_utilization) / gc_running_rate AS gc_running_efficiency,
    heap_allocation_rate * heap_utilization / (1 - heap_utilization) / gc_during_android_startup_rate
      AS gc_during_android_startup_efficiency
  FROM _gc_rates
);

-- What collections cost each process, and what they were for.
CREATE PERFETTO VIEW _android_garbage_collection_process_stats(
  -- Row of process.
  upid JOINID(process.id),
  -- Start of the window.
  ts TIMESTAMP,
  -- Length of the window.
  dur DURATION,
  -- Size of the heap times how long it had it, in MB s.
  heap_size_mbs DOUBLE,
  -- Average size of the heap, in MB.
  heap_size_mb DOUBLE,
  -- What was allocated: the sum of all growth, in MB.
  heap_allocated_mb DOUBLE,
  -- The same in a second, in MB/s.
  heap_allocation_rate DOUBLE,
  -- What collections left times how long they had been waited for, in MB s.
  heap_live_mbs DOUBLE,
  -- What they found times the same, in MB s.
  heap_total_mbs DOUBLE,
  -- The one by the other: how much of the heap was in use.
  heap_utilization DOUBLE,
  -- Processor time of collections, in ns.
  gc_running_dur DURATION,
  -- The same by the length of the window.
  gc_running_rate DOUBLE,
  -- What was allocated for the processor time of collections, as if half of the heap were in use.
  gc_running_efficiency DOUBLE,
  -- Time of collections while any application started, in ns.
  gc_during_android_startup_dur DURATION,
  -- Time of all starts, in ns.
  total_android_startup_dur DURATION,
  -- The one by the other.
  gc_during_android_startup_rate DOUBLE,
  -- What was allocated for that rate, as if half of the heap were in use.
  gc_during_android_startup_efficiency DOUBLE
) AS
SELECT
  upid,
  ts,
  dur,
  heap_size_mbs,
  heap_size_mb,
  heap_allocated_mb,
  heap_allocation_rate,
  heap_live_mbs,
  heap_total_mbs,
  heap_utilization,
  gc_running_dur,
  gc_running_rate,
  gc_running_efficiency,
  gc_during_android_startup_dur,
  total_android_startup_dur,
  gc_during_android_startup_rate,
  gc_during_android_startup_efficiency
FROM _gc_stats_of!(_gc_process_sums);

-- The same for all processes together: always one row.
CREATE PERFETTO VIEW _android_garbage_collection_stats(
  -- Start of the window.
  ts TIMESTAMP,
  -- Length of the window.
  dur DURATION,
  -- Size of the heap times how long it had it, in MB s.
  heap_size_mbs DOUBLE,
  -- Average size of the heap, in MB.
  heap_size_mb DOUBLE,
  -- What was allocated: the sum of all growth, in MB.
  heap_allocated_mb DOUBLE,
  -- The same in a second, in MB/s.
  heap_allocation_rate DOUBLE,
  -- What collections left times how long they had been waited for, in MB s.
  heap_live_mbs DOUBLE,
  -- What they found times the same, in MB s.
  heap_total_mbs DOUBLE,
  -- The one by the other: how much of the heap was in use.
  heap_utilization DOUBLE,
  -- Processor time of collections, in ns.
  gc_running_dur DURATION,
  -- The same by the length of the window.
  gc_running_rate DOUBLE,
  -- What was allocated for the processor time of collections, as if half of the heap were in use.
  gc_running_efficiency DOUBLE,
  -- Time of collections while any application started, in ns.
  gc_during_android_startup_dur DURATION,
  -- Time of all starts, in ns.
  total_android_startup_dur DURATION,
  -- The one by the other.
  gc_during_android_startup_rate DOUBLE,
  -- What was allocated for that rate, as if half of the heap were in use.
  gc_during_android_startup_efficiency DOUBLE
) AS
SELECT
  ts,
  dur,
  heap_size_mbs,
  heap_size_mb,
  heap_allocated_mb,
  heap_allocation_rate,
  heap_live_mbs,
  heap_total_mbs,
  heap_utilization,
  gc_running_dur,
  gc_running_rate,
  gc_running_efficiency,
  gc_during_android_startup_dur,
  total_android_startup_dur,
  gc_during_android_startup_rate,
  gc_during_android_startup_efficiency
FROM _gc_stats_of!((
  SELECT
    sum(heap_size_mbs) AS heap_size_mbs,
    sum(heap_allocated_mb) AS heap_allocated_mb,
    sum(heap_live_mbs) AS heap_live_mbs,
    sum(heap_total_mbs) AS heap_total_mbs,
    sum(gc_running_dur) AS gc_running_dur,
    sum(gc_during_android_startup_dur) AS gc_during_android_startup_dur
  FROM _gc_process_sums
));
