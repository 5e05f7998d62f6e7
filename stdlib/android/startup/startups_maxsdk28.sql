-- Starts of applications up to Android 9, where only the launch of an activity is marked.

INCLUDE PERFETTO MODULE android.frames.timeline;
INCLUDE PERFETTO MODULE android.startup.startup_events;
INCLUDE PERFETTO MODULE slices.with_context;

-- Cold and warm starts are marked. A hot one is an "activityResume" outside of those, up to the end of the next frame;
-- its process stands for the package: (sdk, startup_id, ts, ts_end, dur, package, startup_type, machine_id).
CREATE PERFETTO TABLE _startups_maxsdk28 AS
WITH
  resumes AS (
    SELECT
      s.ts,
      (SELECT min(f.ts) FROM android_frames AS f WHERE f.upid = s.upid AND f.ts > s.ts) AS frame_ts,
      s.process_name,
      s.upid,
      p.machine_id
    FROM thread_slice AS s
    JOIN process AS p USING (upid)
    WHERE s.name = 'activityResume'
  ),
  starts AS (
    SELECT ts, ts_end, package_name AS package, NULL AS startup_type, machine_id FROM _startup_events
    UNION ALL
    SELECT r.ts, max(f.ts + f.dur), r.process_name, 'hot', r.machine_id
    FROM resumes AS r
    JOIN android_frames AS f ON f.upid = r.upid AND f.ts = r.frame_ts
    WHERE NOT EXISTS (
      SELECT 1 FROM _startup_events AS e WHERE e.machine_id = r.machine_id AND r.ts BETWEEN e.ts AND e.ts_end
    )
    GROUP BY r.upid, r.ts
  )
SELECT
  'maxsdk28' AS sdk,
  row_number() OVER (ORDER BY ts) AS startup_id,
  ts,
  ts_end,
  ts_end - ts AS dur,
  package,
  startup_type,
  machine_id
FROM starts;
