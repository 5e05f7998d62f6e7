-- What there is to show of each process.

INCLUDE PERFETTO MODULE viz.summary.slices;
INCLUDE PERFETTO MODULE viz.summary.threads;

-- Slices of its own tracks: (upid, slice_count).
CREATE PERFETTO TABLE _process_track_summary AS
SELECT t.upid, sum(s.cnt) AS slice_count
FROM process_track AS t
JOIN _slice_track_summary AS s USING (id)
GROUP BY t.upid
ORDER BY t.upid;

-- Allocations that a heap profiler saw: (upid, allocation_count).
CREATE PERFETTO TABLE _heap_profile_allocation_summary AS
SELECT upid, count() AS allocation_count
FROM heap_profile_allocation
GROUP BY upid
ORDER BY upid;

-- Objects in heap dumps: (upid, graph_object_count).
CREATE PERFETTO TABLE _heap_profile_graph_summary AS
SELECT upid, count() AS graph_object_count
FROM heap_graph_object
GROUP BY upid
ORDER BY upid;

-- What its threads have: (upid, max_running_dur, sum_running_dur, running_count, slice_count, stack_sample_count).
CREATE PERFETTO TABLE _thread_process_grouped_summary AS
SELECT
  t.upid,
  max(i.max_running_dur) AS max_running_dur,
  sum(i.sum_running_dur) AS sum_running_dur,
  sum(i.running_count) AS running_count,
  sum(i.slice_count) AS slice_count,
  sum(i.stack_sample_count) AS stack_sample_count
FROM _thread_available_info_summary AS i
JOIN thread AS t USING (utid)
WHERE t.upid IS NOT NULL
GROUP BY t.upid
ORDER BY t.upid;

-- All of it, for processes that have any, or counters, or maps of their memory: (upid, max_running_dur, sum_running_dur, running_count, thread_slice_count,
-- process_slice_count, stack_sample_count, allocation_count, graph_object_count).
CREATE PERFETTO TABLE _process_available_info_summary AS
SELECT
  p.upid,
  coalesce(t.max_running_dur, 0) AS max_running_dur,
  coalesce(t.sum_running_dur, 0) AS sum_running_dur,
  coalesce(t.running_count, 0) AS running_count,
  coalesce(t.slice_count, 0) AS thread_slice_count,
  coalesce(s.slice_count, 0) AS process_slice_count,
  coalesce(t.stack_sample_count, 0) AS stack_sample_count,
  coalesce(a.allocation_count, 0) AS allocation_count,
  coalesce(g.graph_object_count, 0) AS graph_object_count
FROM process AS p
LEFT JOIN _thread_process_grouped_summary AS t USING (upid)
LEFT JOIN _process_track_summary AS s USING (upid)
LEFT JOIN _heap_profile_allocation_summary AS a USING (upid)
LEFT JOIN _heap_profile_graph_summary AS g USING (upid)
WHERE
  t.upid IS NOT NULL
  OR s.upid IS NOT NULL
  OR a.upid IS NOT NULL
  OR g.upid IS NOT NULL
  OR p.upid IN (SELECT upid FROM process_counter_track)
  OR p.upid IN (SELECT upid FROM profiler_smaps)
ORDER BY p.upid;
