-- What starts of applications spent their time on, by the main thread.

INCLUDE PERFETTO MODULE android.startup.startups;
INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE slices.flat_slices;

-- The reason that a slice stands for, or NULL.
CREATE PERFETTO FUNCTION _startup_reason_of_slice(
  name STRING
)
RETURNS STRING AS
WITH
  rules(pattern, reason) AS (
    VALUES
      ('binder transaction', 'binder'),
      ('monitor contention*', 'monitor_contention'),
      ('Lock contention*', 'art_lock_contention'),
      ('GC: Wait For*', 'art_gc_wait'),
      ('*concurrent*GC*', 'garbage_collection'),
      ('mm_vmscan_direct_reclaim', 'kernel_memory_reclaim'),
      ('OpenDexFilesFromOat*', 'open_dex_files_from_oat'),
      ('VerifyClass*', 'verify_class'),
      ('JIT compiling*', 'jit_compile'),
      ('dlopen*', 'dlopen'),
      ('inflate', 'inflate'),
      ('ResourcesManager#getResources', 'resources_manager_get_resources'),
      ('Choreographer#doFrame*', 'choreographer_do_frame'),
      ('performCreate*', 'perform_create'),
      ('performResume*', 'perform_resume'),
      ('activityStart', 'activity_start'),
      ('activityResume', 'activity_resume'),
      ('bindApplication', 'bind_application'),
      ('PostFork', 'post_fork'),
      ('ActivityThreadMain', 'activity_thread_main'),
      ('location*status=* filter=* reason=*', 'dex2oat')
  )
SELECT reason FROM rules WHERE $name GLOB pattern LIMIT 1;

-- Each moment with one reason: waiting for a disk, for memory or for a processor tells more than the slice around it;
-- the slice tells more than running or sleeping.
CREATE PERFETTO TABLE android_startup_opinionated_breakdown(
  -- The start of the application: startup_id of android_startups.
  startup_id JOINID(android_startups.startup_id),
  -- Row of slice; NULL: explained by a state.
  slice_id JOINID(slice.id),
  -- Row of thread_state; NULL: explained by a slice.
  thread_state_id JOINID(thread_state.id),
  -- When the part of the startup began.
  ts TIMESTAMP,
  -- Duration of the part of the startup in nanoseconds.
  dur DURATION,
  -- What the time went to.
  reason STRING
) AS
WITH
  mains AS (
    SELECT startup_id AS id, ts, dur, utid FROM android_startup_threads WHERE is_main_thread AND dur > 0
  ),
  states AS (
    SELECT row_number() OVER () AS id, i.id_0 AS startup_id, i.id_1 AS thread_state_id, i.ts, i.dur, i.utid
    FROM _interval_intersect!((
      mains,
      (SELECT id, ts, iif(dur < 0, trace_end() - ts, dur) AS dur, utid FROM thread_state)
    ), (utid)) AS i
    WHERE i.dur > 0
  ),
  slices AS (
    SELECT row_number() OVER () AS id, f.ts, f.dur, t.utid, f.slice_id, _startup_reason_of_slice(f.name) AS reason
    FROM _slice_flattened AS f
    JOIN thread_track AS t ON t.id = f.track_id
    WHERE f.dur > 0 AND t.utid IN (SELECT utid FROM mains)
  ),
  both AS (
    SELECT i.ts, i.dur, i.id_0 AS id, s.slice_id, s.reason
    FROM _interval_intersect!((states, slices), (utid)) AS i
    JOIN slices AS s ON s.id = i.id_1
    WHERE i.dur > 0
  ),
  -- pieces of a state without a slice
  bare AS (
    SELECT b.id, lag(b.ts + b.dur, 1, s.ts) OVER (PARTITION BY b.id ORDER BY b.ts) AS ts, b.ts AS ts_end
    FROM both AS b
    JOIN states AS s USING (id)
    UNION ALL
    SELECT s.id, coalesce(max(b.ts + b.dur), s.ts), s.ts + s.dur
    FROM states AS s
    LEFT JOIN both AS b USING (id)
    GROUP BY s.id
  ),
  pieces AS (
    SELECT id, ts, dur, slice_id, reason FROM both
    UNION ALL
    SELECT id, ts, ts_end - ts, NULL, NULL FROM bare WHERE ts_end > ts
  )
SELECT
  s.startup_id,
  p.slice_id,
  s.thread_state_id,
  p.ts,
  p.dur,
  CASE
    WHEN t.state = 'D' AND t.io_wait THEN 'io'
    WHEN t.state IN ('R', 'R+') THEN t.state
    WHEN t.state = 'D' THEN coalesce(p.reason, 'D')
    ELSE coalesce(p.reason, t.state)
  END AS reason
FROM pieces AS p
JOIN states AS s USING (id)
JOIN thread_state AS t ON t.id = s.thread_state_id
ORDER BY s.startup_id, p.ts;
