-- How long frames took and by how much they missed their time.

INCLUDE PERFETTO MODULE android.frames.timeline;

-- The first slice of each frame, whichever process it is of: (frame_id, ts, dur).
CREATE PERFETTO TABLE _first_actual_of_frame AS
SELECT cast_int!(name) AS frame_id, ts, dur
FROM actual_frame_timeline_slice
WHERE id IN (SELECT min(id) FROM actual_frame_timeline_slice GROUP BY name);

-- The same of when frames were expected.
CREATE PERFETTO TABLE _first_expected_of_frame AS
SELECT cast_int!(name) AS frame_id, ts, dur
FROM expected_frame_timeline_slice
WHERE id IN (SELECT min(id) FROM expected_frame_timeline_slice GROUP BY name);

-- By how much a frame ended after its deadline; negative when it was in time.
CREATE PERFETTO TABLE android_frames_overrun(
  -- Number of the frame, as the frame timeline counts them.
  frame_id LONG,
  -- By how much it ended after its deadline, in nanoseconds; negative when in time.
  overrun LONG
) AS
SELECT a.frame_id, a.ts + a.dur - e.ts - e.dur AS overrun
FROM _first_actual_of_frame AS a
JOIN _first_expected_of_frame AS e USING (frame_id)
ORDER BY a.frame_id;

-- Time of the user interface's thread.
CREATE PERFETTO TABLE android_frames_ui_time(
  -- Number of the frame, as the frame timeline counts them.
  frame_id LONG,
  -- Time of the user interface's thread, in nanoseconds.
  ui_time LONG
) AS
SELECT f.frame_id, s.dur AS ui_time
FROM android_frames_choreographer_do_frame AS f
JOIN slice AS s USING (id);

-- The first process's row of each frame: (frame_id, do_frame_id, actual_frame_timeline_id, expected_frame_timeline_id).
CREATE PERFETTO TABLE _first_process_of_frame AS
SELECT frame_id, do_frame_id, actual_frame_timeline_id, expected_frame_timeline_id
FROM android_frames
WHERE _auto_id IN (SELECT min(_auto_id) FROM android_frames GROUP BY frame_id);

-- How long after its planned start a frame began.
CREATE PERFETTO TABLE android_app_vsync_delay_per_frame(
  -- Number of the frame, as the frame timeline counts them.
  frame_id LONG,
  -- How long after its planned start it began, in nanoseconds.
  app_vsync_delay LONG
) AS
SELECT f.frame_id, a.ts - e.ts AS app_vsync_delay
FROM _first_process_of_frame AS f
JOIN slice AS e ON e.id = f.expected_frame_timeline_id
JOIN slice AS a ON a.id = f.actual_frame_timeline_id;

-- The delay, the turn and all drawing of a frame together.
CREATE PERFETTO TABLE android_cpu_time_per_frame(
  -- Number of the frame, as the frame timeline counts them.
  frame_id LONG,
  -- How long after its planned start it began, in nanoseconds.
  app_vsync_delay LONG,
  -- Time of the user interface's thread.
  do_frame_dur DURATION,
  -- Time of drawing.
  draw_frame_dur DURATION,
  -- Delay, turn and drawing together, in nanoseconds.
  cpu_time LONG
) AS
WITH
  drawing AS (
    SELECT d.frame_id, sum(s.dur) AS draw_frame_dur
    FROM android_frames_draw_frame AS d
    JOIN slice AS s USING (id)
    GROUP BY d.frame_id
  )
SELECT
  v.frame_id,
  v.app_vsync_delay,
  s.dur AS do_frame_dur,
  d.draw_frame_dur,
  v.app_vsync_delay + s.dur + d.draw_frame_dur AS cpu_time
FROM android_app_vsync_delay_per_frame AS v
JOIN drawing AS d USING (frame_id)
JOIN _first_process_of_frame AS f USING (frame_id)
JOIN slice AS s ON s.id = f.do_frame_id;

-- An estimate for frames whose drawing is not known: 5 ms stand for it.
CREATE PERFETTO TABLE _cpu_time_per_frame_fallback(
  -- Number of the frame.
  frame_id LONG,
  -- The turn's time and those 5 ms, in nanoseconds.
  estimated_cpu_time LONG
) AS
SELECT frame_id, ui_time + 5000000 AS estimated_cpu_time
FROM android_frames_ui_time;

-- What is known, or else the estimate.
CREATE PERFETTO TABLE _estimated_cpu_time_per_frame(
  -- Number of the frame.
  frame_id LONG,
  -- What it took, in nanoseconds.
  cpu_time LONG
) AS
SELECT e.frame_id, coalesce(c.cpu_time, e.estimated_cpu_time) AS cpu_time
FROM _cpu_time_per_frame_fallback AS e
LEFT JOIN android_cpu_time_per_frame AS c USING (frame_id);

-- How many slices the timeline has of each frame: what was seen …
CREATE PERFETTO TABLE _frame_id_count_in_actual_timeline AS
SELECT cast_int!(name) AS frame_id, count() AS count
FROM actual_frame_timeline_slice
GROUP BY 1;

-- … and what was planned.
CREATE PERFETTO TABLE _frame_id_count_in_expected_timeline AS
SELECT cast_int!(name) AS frame_id, count() AS count
FROM expected_frame_timeline_slice
GROUP BY 1;

-- The judgement on each frame. Where the drawing is not known, 5 ms stand for it.
CREATE PERFETTO TABLE android_frame_stats(
  -- Number of the frame, as the frame timeline counts them.
  frame_id LONG,
  -- By how much it ended after its deadline, in nanoseconds; negative when in time.
  overrun LONG,
  -- Delay, turn and drawing together, in nanoseconds.
  cpu_time LONG,
  -- Time of the user interface's thread, in nanoseconds.
  ui_time LONG,
  -- 1 when it missed its deadline, else NULL.
  was_jank BOOL,
  -- 1 when cpu_time is over 20 ms, else NULL.
  was_slow_frame BOOL,
  -- 1 when cpu_time is over 50 ms, else NULL.
  was_big_jank BOOL,
  -- 1 when cpu_time is over 200 ms, else NULL.
  was_huge_jank BOOL
) AS
WITH
  times AS (
    SELECT u.frame_id, u.ui_time, c.cpu_time
    FROM android_frames_ui_time AS u
    JOIN _estimated_cpu_time_per_frame AS c USING (frame_id)
  )
SELECT
  o.frame_id,
  o.overrun,
  t.cpu_time,
  t.ui_time,
  iif(o.overrun > 0, 1, NULL) AS was_jank,
  iif(t.cpu_time > 20000000, 1, NULL) AS was_slow_frame,
  iif(t.cpu_time > 50000000, 1, NULL) AS was_big_jank,
  iif(t.cpu_time > 200000000, 1, NULL) AS was_huge_jank
FROM android_frames_overrun AS o
JOIN times AS t USING (frame_id)
ORDER BY o.frame_id;
