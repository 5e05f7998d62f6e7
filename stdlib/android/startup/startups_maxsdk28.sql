-- Starts of applications up to Android 9, where only the launch of an activity is marked.

INCLUDE PERFETTO MODULE android.frames.timeline;
INCLUDE PERFETTO MODULE android.startup.startup_events;
INCLUDE PERFETTO MODULE slices.with_context;

-- Cold and warm starts are marked. A hot one is an "activityResume" of a main thread outside of those, up to the end of the next
-- frame, whosever it is; its process stands for the package: (ts, ts_end, dur, package, startup_type, machine_id).
CREATE PERFETTO TABLE _startups_maxsdk28 AS
WITH
  starts AS (
    SELECT ts, ts_end, package_name AS package, NULL AS startup_type, machine_id FROM _startup_events
    UNION ALL
    SELECT s.ts, f.ts + f.dur, coalesce(s.process_name, s.thread_name, 'unknown'), 'hot', t.machine_id
    FROM thread_slice AS s
    JOIN thread AS t USING (utid)
    JOIN android_first_frame_after(s.ts) AS f
    WHERE
      s.name = 'activityResume'
      AND s.is_main_thread
      AND NOT EXISTS (
        SELECT 1 FROM _startup_events AS e WHERE e.machine_id = t.machine_id AND s.ts BETWEEN e.ts AND e.ts_end
      )
  )
SELECT ts, ts_end, ts_end - ts AS dur, package, startup_type, machine_id
FROM starts
ORDER BY ts;
