-- How long starts of applications took until something, and everything, was on the screen.

INCLUDE PERFETTO MODULE android.frames.timeline;
INCLUDE PERFETTO MODULE android.startup.startups;
INCLUDE PERFETTO MODULE slices.with_context;

-- Starts with their processes, from "bindApplication" or, in a warm start, from what the launch began with.
CREATE PERFETTO VIEW _startups_with_upid AS
SELECT
  s.startup_id,
  p.upid,
  coalesce(
    (
      SELECT min(b.slice_ts)
      FROM android_thread_slices_for_all_startups AS b
      WHERE b.startup_id = s.startup_id AND b.is_main_thread AND b.slice_name = 'bindApplication'
    ),
    s.ts
  ) AS ts
FROM android_startups AS s
JOIN android_startup_processes AS p USING (startup_id);

-- Drawings of applications: (upid, frame_id, ts, ts_end).
CREATE PERFETTO TABLE _startup_drawings AS
SELECT d.upid, d.frame_id, s.ts, s.ts + s.dur AS ts_end
FROM android_frames_draw_frame AS d
JOIN slice AS s USING (id)
WHERE s.dur >= 0;

-- From the start to the end of the first drawing.
CREATE PERFETTO TABLE _ttid AS
SELECT b.startup_id, b.upid, d.frame_id, min(d.ts_end) - b.ts AS ttid
FROM _startups_with_upid AS b
JOIN _startup_drawings AS d ON d.upid = b.upid AND d.ts >= b.ts
GROUP BY b.startup_id, b.upid;

-- From the start to the end of the first drawing that the application calls complete.
CREATE PERFETTO TABLE _ttfd AS
SELECT b.startup_id, b.upid, d.frame_id, min(d.ts_end) - b.ts AS ttfd
FROM _startups_with_upid AS b
JOIN _startup_drawings AS d
  ON d.upid = b.upid
  AND d.ts >= (
    SELECT min(r.ts) FROM thread_slice AS r WHERE r.upid = b.upid AND r.name GLOB 'reportFullyDrawn*' AND r.ts >= b.ts
  )
GROUP BY b.startup_id, b.upid;

-- From "bindApplication" (or what the launch began with in a warm start) to the end of the first drawing, and to the
-- first drawing that the application calls complete ("reportFullyDrawn").
CREATE PERFETTO TABLE android_startup_time_to_display(
  -- The start of the application: startup_id of android_startups.
  startup_id LONG,
  -- From the launch to its first frame, in nanoseconds.
  time_to_initial_display LONG,
  -- From the launch until the application said that it is complete, in nanoseconds.
  time_to_full_display LONG,
  -- The frame at which the first ends.
  ttid_frame_id LONG,
  -- The frame at which the second ends.
  ttfd_frame_id LONG,
  -- Row of process.
  upid JOINID(process.id)
) AS
SELECT
  s.startup_id,
  i.ttid AS time_to_initial_display,
  f.ttfd AS time_to_full_display,
  i.frame_id AS ttid_frame_id,
  f.frame_id AS ttfd_frame_id,
  p.upid
FROM android_startups AS s
LEFT JOIN _startups_with_upid AS p USING (startup_id)
LEFT JOIN _ttid AS i ON i.startup_id = p.startup_id AND i.upid = p.upid
LEFT JOIN _ttfd AS f ON f.startup_id = p.startup_id AND f.upid = p.upid;
