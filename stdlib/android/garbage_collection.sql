-- Garbage collections of the Java heap: how much they freed and what their thread did meanwhile.

INCLUDE PERFETTO MODULE android.startup.startups;
INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE slices.with_context;

-- Collections; a phase of compaction, or of copying, that follows on the track belongs to the one before.
CREATE PERFETTO TABLE _gc_slice AS
SELECT
  id AS gc_id,
  name AS gc_name,
  ts,
  iif(dur < 0, trace_end() - ts, dur) + iif(
    next_name IN ('CompactionPhase', 'Background concurrent copying GC'), next_dur, 0
  ) AS dur,
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
SELECT
  c.id,
  c.ts,
  lead(c.ts, 1, trace_end()) OVER (PARTITION BY c.track_id ORDER BY c.ts) - c.ts AS dur,
  t.upid,
  cast_int!(c.value) AS value
FROM counter AS c
JOIN process_counter_track AS t ON t.id = c.track_id
WHERE t.name = 'Heap size (KB)';

-- The size of the heap behind each collection: that of the first counter at or behind its end; NULL: another collection of the
-- process ends before it.
CREATE PERFETTO VIEW _gc_slice_with_final_heap AS
SELECT g.gc_id, g.upid, g.ts, g.dur, m.next_value AS final_heap
FROM _gc_slice AS g
JOIN (
  SELECT gc_id, lead(value) OVER (PARTITION BY upid ORDER BY ts, gc_id IS NULL, gc_id) AS next_value
  FROM (
    SELECT upid, gc_id, ts + dur AS ts, NULL AS value FROM _gc_slice
    UNION ALL
    SELECT upid, NULL AS gc_id, ts, value FROM _gc_heap_counter
  )
) AS m USING (gc_id);

-- The smallest and the largest size of the heap from the start of each collection to behind its end; NULL where it is not known
-- how large it was behind. Collections without a size meanwhile are not here.
CREATE PERFETTO TABLE _gc_slice_heap AS
SELECT
  i.id_0 AS gc_id,
  min(min(h.value, f.final_heap)) / 1e3 AS min_heap_mb,
  max(max(h.value, f.final_heap)) / 1e3 AS max_heap_mb
FROM _interval_intersect!((
  (SELECT gc_id AS id, ts, dur, upid FROM _gc_slice),
  (SELECT id, ts, dur, upid FROM _gc_heap_counter)
), (upid)) AS i
JOIN _gc_heap_counter AS h ON h.id = i.id_1
JOIN _gc_slice_with_final_heap AS f ON f.gc_id = i.id_0
WHERE i.dur > 0
GROUP BY i.id_0;

-- The collections during which the size of the heap was known.
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
  -- Difference of the two sizes, in MB; NULL, as they are, where the size of the heap behind it is not known.
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
LEFT JOIN states AS s USING (gc_id)
ORDER BY g.gc_id;

-- From the first size of a heap to the last one; NULL without.
CREATE PERFETTO VIEW _gc_stats_window AS
SELECT min(ts) AS ts, max(ts) - min(ts) AS dur
FROM _gc_heap_counter;

-- Sizes of the heaps over time, each since the one before, and how much was allocated: the sum of all growth.
CREATE PERFETTO TABLE _gc_heap_allocated AS
SELECT
  upid,
  sum(value * since) / (1e3 * 1e9) AS heap_size_mbs,
  sum(max(coalesce(growth, 0), 0)) / 1e3 AS heap_allocated_mb
FROM (
  SELECT
    t.upid,
    c.value,
    c.ts - lag(c.ts) OVER (PARTITION BY t.upid ORDER BY c.ts) AS since,
    c.value - lag(c.value) OVER (PARTITION BY t.upid ORDER BY c.ts) AS growth
  FROM counter AS c
  JOIN process_counter_track AS t ON t.id = c.track_id
  WHERE t.name = 'Heap size (KB)'
)
GROUP BY upid;

-- How much of the heaps was in use: the least and the greatest size at each collection, times the time from the end of the collection
-- before to its own; from the start of the process, or of the sizes, for the first one.
CREATE PERFETTO TABLE _gc_heap_utilization AS
WITH
  collections AS (
    SELECT upid, gc_ts, gc_dur, min_heap_mb, max_heap_mb, gc_running_dur FROM android_garbage_collection_events
    UNION ALL
    SELECT p.upid, max(coalesce(p.start_ts, w.ts), w.ts), 0, 0, 0, NULL
    FROM process AS p
    JOIN _gc_stats_window AS w
  ),
  periods AS (
    SELECT *, gc_ts + gc_dur - lag(gc_ts + gc_dur) OVER (PARTITION BY upid ORDER BY gc_ts) AS period
    FROM collections
  )
SELECT
  upid,
  sum(iif(min_heap_mb IS NOT NULL, period * min_heap_mb, NULL)) / 1e9 AS heap_live_mbs,
  sum(iif(min_heap_mb IS NOT NULL, period * max_heap_mb, NULL)) / 1e9 AS heap_total_mbs,
  sum(gc_running_dur) AS gc_running_dur
FROM periods
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

-- What collections cost each process, and what they were for.
CREATE PERFETTO TABLE _android_garbage_collection_process_stats(
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
WITH
  starts AS (SELECT sum(dur) AS total FROM android_startups),
  rates AS (
    SELECT
      s.*,
      w.ts,
      w.dur,
      s.heap_size_mbs * 1e9 / w.dur AS heap_size_mb,
      s.heap_allocated_mb * 1e9 / w.dur AS heap_allocation_rate,
      s.heap_live_mbs / s.heap_total_mbs AS heap_utilization,
      s.gc_running_dur * 1.0 / w.dur AS gc_running_rate,
      t.total AS total_android_startup_dur,
      s.gc_during_android_startup_dur * 1.0 / t.total AS gc_during_android_startup_rate
    FROM _gc_process_sums AS s
    JOIN _gc_stats_window AS w
    JOIN starts AS t
  )
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
  heap_allocation_rate * heap_utilization / (gc_running_rate * (1 - heap_utilization)) AS gc_running_efficiency,
  gc_during_android_startup_dur,
  total_android_startup_dur,
  gc_during_android_startup_rate,
  heap_allocation_rate * heap_utilization / (gc_during_android_startup_rate * (1 - heap_utilization))
    AS gc_during_android_startup_efficiency
FROM rates;

-- The same for all processes together: always one row.
CREATE PERFETTO TABLE _android_garbage_collection_stats(
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
WITH
  sums AS (
    SELECT
      ts,
      dur,
      sum(heap_size_mbs) AS heap_size_mbs,
      sum(heap_size_mb) AS heap_size_mb,
      sum(heap_allocated_mb) AS heap_allocated_mb,
      sum(heap_allocation_rate) AS heap_allocation_rate,
      sum(heap_live_mbs) AS heap_live_mbs,
      sum(heap_total_mbs) AS heap_total_mbs,
      sum(heap_live_mbs) / sum(heap_total_mbs) AS heap_utilization,
      sum(gc_running_dur) AS gc_running_dur,
      sum(gc_running_rate) AS gc_running_rate,
      sum(gc_during_android_startup_dur) AS gc_during_android_startup_dur,
      total_android_startup_dur,
      sum(gc_during_android_startup_rate) AS gc_during_android_startup_rate
    FROM _android_garbage_collection_process_stats
  )
SELECT
  *,
  heap_allocation_rate * heap_utilization / (gc_running_rate * (1 - heap_utilization)) AS gc_running_efficiency,
  heap_allocation_rate * heap_utilization / (gc_during_android_startup_rate * (1 - heap_utilization))
    AS gc_during_android_startup_efficiency
FROM sums;
