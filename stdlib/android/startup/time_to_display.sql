-- How long starts of applications took until something, and everything, was on the screen.

INCLUDE PERFETTO MODULE android.frames.timeline;
INCLUDE PERFETTO MODULE android.startup.startups;
INCLUDE PERFETTO MODULE slices.with_context;

-- Starts with their processes; where none is known, those whose name is the package's:
-- (startup_id, ts, ts_end, dur, package, startup_type, upid).
CREATE PERFETTO VIEW _startups_with_upid AS
SELECT s.startup_id, s.ts, s.ts_end, s.dur, s.package, s.startup_type, coalesce(p.upid, n.upid) AS upid
FROM android_startups AS s
LEFT JOIN android_startup_processes AS p USING (startup_id)
LEFT JOIN process AS n ON p.upid IS NULL AND n.name GLOB s.package;

-- Of the frames of a process, which have their numbers by time, the first one that began in the start or after it:
-- (startup_id, frame_id, draw_frame_id, ttid, upid), ttid from the start to the end of that frame's drawing.
CREATE PERFETTO TABLE _ttid AS
WITH
  first_frames AS (
    SELECT s.startup_id, s.ts, s.upid, min(f._auto_id) AS frame_row
    FROM _startups_with_upid AS s
    JOIN android_frames AS f ON f.upid = s.upid AND f.ts >= s.ts
    GROUP BY s.startup_id
  )
SELECT s.startup_id, f.frame_id, f.draw_frame_id, d.ts + d.dur - s.ts AS ttid, s.upid
FROM first_frames AS s
JOIN android_frames AS f ON f._auto_id = s.frame_row
JOIN slice AS d ON d.id = f.draw_frame_id;

-- The first "reportFullyDrawn" of a main thread after the start: (startup_id, startup_ts, ts, utid, upid).
CREATE PERFETTO TABLE _startup_reports_fully_drawn AS
SELECT s.startup_id, s.ts AS startup_ts, r.ts, r.utid, s.upid, min(r.id) AS slice_id
FROM _startups_with_upid AS s
JOIN thread_slice AS r ON r.upid = s.upid AND r.ts >= s.ts
WHERE r.name GLOB 'reportFullyDrawn*' AND r.is_main_thread
GROUP BY s.startup_id;

-- The same with the first frame of that thread that was not over yet:
-- (startup_id, frame_id, draw_frame_id, ttfd, upid), ttfd from the start to the end of that frame's drawing.
CREATE PERFETTO TABLE _ttfd AS
WITH
  first_frames AS (
    SELECT r.startup_id, r.startup_ts, r.upid, min(f._auto_id) AS frame_row
    FROM _startup_reports_fully_drawn AS r
    JOIN android_frames AS f ON f.ui_thread_utid = r.utid AND r.ts < f.ts + f.dur
    GROUP BY r.startup_id
  )
SELECT s.startup_id, f.frame_id, f.draw_frame_id, d.ts + d.dur - s.startup_ts AS ttfd, s.upid
FROM first_frames AS s
JOIN android_frames AS f ON f._auto_id = s.frame_row
JOIN slice AS d ON d.id = f.draw_frame_id;

-- How long a start took until the drawing of its first frame was over, and until that of the frame in which the application said
-- that it is complete ("reportFullyDrawn").
CREATE PERFETTO TABLE android_startup_time_to_display(
  -- The start of the application: startup_id of android_startups.
  startup_id LONG,
  -- From the start to the end of its first frame's drawing, in nanoseconds.
  time_to_initial_display LONG,
  -- From the start to the end of the drawing of the frame in which the application said that it is complete, in nanoseconds.
  time_to_full_display LONG,
  -- The frame at which the first ends.
  ttid_frame_id LONG,
  -- The frame at which the second ends.
  ttfd_frame_id LONG,
  -- Row of process; NULL: it has no frame.
  upid JOINID(process.id)
) AS
SELECT
  s.startup_id,
  i.ttid AS time_to_initial_display,
  f.ttfd AS time_to_full_display,
  i.frame_id AS ttid_frame_id,
  f.frame_id AS ttfd_frame_id,
  i.upid
FROM android_startups AS s
LEFT JOIN _ttid AS i USING (startup_id)
LEFT JOIN _ttfd AS f USING (startup_id);
