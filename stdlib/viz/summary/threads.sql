-- What there is to show of each thread.

INCLUDE PERFETTO MODULE viz.summary.slices;

-- How long each thread ran: (utid, max_running_dur, sum_running_dur, running_count).
CREATE PERFETTO TABLE _sched_summary AS
SELECT utid, max(dur) AS max_running_dur, sum(dur) AS sum_running_dur, count() AS running_count
FROM sched
WHERE utid NOT IN (SELECT utid FROM thread WHERE is_idle) AND dur != -1
GROUP BY utid
ORDER BY utid;

-- How many slices its tracks have: (utid, slice_count).
CREATE PERFETTO TABLE _thread_track_summary AS
SELECT t.utid, sum(s.cnt) AS slice_count
FROM thread_track AS t
JOIN _slice_track_summary AS s USING (id)
GROUP BY t.utid
ORDER BY t.utid;

-- How often it was sampled: (utid, sample_count).
CREATE PERFETTO TABLE _stack_sample_summary AS
SELECT c.utid, count() AS sample_count
FROM stack_sample AS s
JOIN stack_sample_task_context AS c ON c.id = s.task_context_id
WHERE c.utid IS NOT NULL
GROUP BY c.utid
ORDER BY c.utid;

-- All of it, for threads that have any, or counters: (utid, max_running_dur, sum_running_dur, running_count, slice_count,
-- stack_sample_count).
CREATE PERFETTO TABLE _thread_available_info_summary AS
SELECT
  t.utid,
  coalesce(r.max_running_dur, 0) AS max_running_dur,
  coalesce(r.sum_running_dur, 0) AS sum_running_dur,
  coalesce(r.running_count, 0) AS running_count,
  coalesce(s.slice_count, 0) AS slice_count,
  coalesce(k.sample_count, 0) AS stack_sample_count
FROM thread AS t
LEFT JOIN _sched_summary AS r USING (utid)
LEFT JOIN _thread_track_summary AS s USING (utid)
LEFT JOIN _stack_sample_summary AS k USING (utid)
WHERE
  r.utid IS NOT NULL OR s.utid IS NOT NULL OR k.utid IS NOT NULL OR t.utid IN (SELECT utid FROM thread_counter_track)
ORDER BY t.utid;
