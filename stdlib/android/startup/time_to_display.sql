-- How long starts of applications took until something, and everything, was on the screen.

INCLUDE PERFETTO MODULE android.frames.timeline;
INCLUDE PERFETTO MODULE android.startup.startups;
INCLUDE PERFETTO MODULE slices.with_context;

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
WITH
  begins AS (
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
    JOIN android_startup_processes AS p USING (startup_id)
  ),
  drawings AS (
    SELECT d.upid, d.frame_id, s.ts, s.ts + s.dur AS ts_end
    FROM android_frames_draw_frame AS d
    JOIN slice AS s USING (id)
    WHERE s.dur >= 0
  ),
  marks AS (
    SELECT
      b.*,
      (SELECT min(d.ts_end) FROM drawings AS d WHERE d.upid = b.upid AND d.ts >= b.ts) AS first_end,
      (
        SELECT min(d.ts_end)
        FROM drawings AS d
        WHERE d.upid = b.upid AND d.ts >= (
          SELECT min(r.ts) FROM thread_slice AS r WHERE r.upid = b.upid AND r.name GLOB 'reportFullyDrawn*' AND r.ts >= b.ts
        )
      ) AS full_end
    FROM begins AS b
  )
SELECT
  s.startup_id,
  m.first_end - m.ts AS time_to_initial_display,
  m.full_end - m.ts AS time_to_full_display,
  (SELECT d.frame_id FROM drawings AS d WHERE d.upid = m.upid AND d.ts_end = m.first_end) AS ttid_frame_id,
  (SELECT d.frame_id FROM drawings AS d WHERE d.upid = m.upid AND d.ts_end = m.full_end) AS ttfd_frame_id,
  m.upid
FROM android_startups AS s
LEFT JOIN marks AS m USING (startup_id);
