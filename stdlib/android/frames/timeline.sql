-- Frames of applications: the Choreographer's turn, the drawing, and what the frame timeline planned and saw.

INCLUDE PERFETTO MODULE slices.with_context;
INCLUDE PERFETTO MODULE android.frames.timeline_maxsdk28;

-- Slices whose name begins as given, by the number behind the first blank of the name. Those without a number (0) and those
-- with none of the display's (-1) are left out.
CREATE PERFETTO FUNCTION _get_frame_table_with_id(
  glob_str STRING
)
RETURNS TABLE(
  id LONG,
  frame_id LONG,
  utid LONG,
  upid LONG,
  ts LONG
) AS
SELECT id, frame_id, utid, upid, ts
FROM (SELECT id, cast_int!(str_split(name, ' ', 1)) AS frame_id, utid, upid, ts FROM thread_slice WHERE name GLOB $glob_str)
WHERE frame_id NOT IN (0, -1);

-- Turns of the user interface's thread.
CREATE PERFETTO TABLE android_frames_choreographer_do_frame(
  -- Row of slice.
  id ID(slice.id),
  -- Number of the frame, as the frame timeline counts them.
  frame_id LONG,
  -- The thread of the user interface: row of thread.
  ui_thread_utid JOINID(thread.id),
  -- Row of process.
  upid JOINID(process.id),
  -- When the turn began.
  ts TIMESTAMP
) AS
SELECT id, frame_id, utid AS ui_thread_utid, upid, ts
FROM _get_frame_table_with_id('Choreographer#doFrame*');

-- Drawing; a frame with several layers has several.
CREATE PERFETTO TABLE android_frames_draw_frame(
  -- Row of slice.
  id ID(slice.id),
  -- Number of the frame, as the frame timeline counts them.
  frame_id LONG,
  -- The thread that draws: row of thread.
  render_thread_utid JOINID(thread.id),
  -- Row of process.
  upid JOINID(process.id)
) AS
SELECT id, frame_id, utid AS render_thread_utid, upid
FROM _get_frame_table_with_id('DrawFrame*');

-- What the timeline saw of each frame and layer of a process: (frame_id, layer_id, layer_name, slice_id, ts, dur, upid) …
CREATE PERFETTO TABLE _distinct_layer_actual_timeline_slice_per_process AS
SELECT
  cast_int!(name) AS frame_id,
  cast_int!(str_split(layer_name, '#', 1)) AS layer_id,
  layer_name,
  id AS slice_id,
  ts,
  dur,
  upid
FROM actual_frame_timeline_slice;

-- … and what it planned for each frame of a process: (frame_id, upid, id).
CREATE PERFETTO TABLE _distinct_from_expected_timeline_slice_per_process AS
SELECT cast_int!(name) AS frame_id, upid, id
FROM expected_frame_timeline_slice;

-- Frames that a callback came too late for: "J<NAME>#FT#MissedSFCallback#7", "…HWUICallback#7".
CREATE PERFETTO TABLE _vsync_missed_callback AS
SELECT
  cast_int!(str_split(name, 'Callback#', 1)) AS vsync,
  max(name GLOB '*SF*') AS sf_callback_missed,
  max(name GLOB '*HWUI*') AS hwui_callback_missed
FROM slice
WHERE name GLOB '*FT#Missed*Callback*'
GROUP BY vsync;

-- The layers that a frame drew to. Frames of Android 9 and before, whose slices tell no number, are there only if no others are
-- and the recording has no frame timeline; they have no layers.
CREATE PERFETTO TABLE android_frames_layers(
  -- Number of the frame, as the frame timeline counts them.
  frame_id LONG,
  -- When the drawing of the layer began.
  ts TIMESTAMP,
  -- Duration of the drawing of the layer in nanoseconds.
  dur DURATION,
  -- When the drawing of the layer ended.
  ts_end TIMESTAMP,
  -- The slice Choreographer#doFrame: row of slice.
  do_frame_id JOINID(slice.id),
  -- The slice DrawFrame: row of slice.
  draw_frame_id JOINID(slice.id),
  -- The frame as it came: row of slice.
  actual_frame_timeline_id JOINID(slice.id),
  -- The planned frame: row of slice.
  expected_frame_timeline_id JOINID(slice.id),
  -- The thread that draws: row of thread.
  render_thread_utid JOINID(thread.id),
  -- The thread of the user interface: row of thread.
  ui_thread_utid JOINID(thread.id),
  -- Number of the layer.
  layer_id LONG,
  -- Name of the layer.
  layer_name STRING,
  -- Row of process.
  upid JOINID(process.id),
  -- Name of the process.
  process_name STRING
) AS
WITH
  numbered AS (
    SELECT
      c.frame_id,
      coalesce(a.ts, c.ts) AS ts,
      coalesce(a.dur, s.ts + s.dur - c.ts) AS dur,
      c.id AS do_frame_id,
      d.id AS draw_frame_id,
      a.slice_id AS actual_frame_timeline_id,
      e.id AS expected_frame_timeline_id,
      d.render_thread_utid,
      c.ui_thread_utid,
      a.layer_id,
      a.layer_name,
      c.upid,
      p.name AS process_name
    FROM android_frames_choreographer_do_frame AS c
    JOIN android_frames_draw_frame AS d USING (frame_id, upid)
    JOIN slice AS s ON s.id = d.id
    JOIN process AS p USING (upid)
    LEFT JOIN _distinct_layer_actual_timeline_slice_per_process AS a USING (frame_id, upid)
    LEFT JOIN _distinct_from_expected_timeline_slice_per_process AS e USING (frame_id, upid)
  ),
  frames AS (
    SELECT * FROM numbered WHERE EXISTS (SELECT 1 FROM actual_frame_timeline_slice)
    UNION ALL
    SELECT
      frame_id, ts, dur, do_frame_id, draw_frame_id, NULL, NULL, render_thread_utid, ui_thread_utid, NULL, NULL, upid, process_name
    FROM _frames_maxsdk_28
    WHERE NOT EXISTS (SELECT 1 FROM actual_frame_timeline_slice)
  )
SELECT
  frame_id,
  ts,
  dur,
  ts + dur AS ts_end,
  do_frame_id,
  draw_frame_id,
  actual_frame_timeline_id,
  expected_frame_timeline_id,
  render_thread_utid,
  ui_thread_utid,
  layer_id,
  layer_name,
  upid,
  process_name
FROM frames
ORDER BY frame_id, ts, dur, do_frame_id, draw_frame_id, actual_frame_timeline_id;

-- All of a frame in one row, with its first drawing.
CREATE PERFETTO TABLE android_frames(
  -- Number of the frame, as the frame timeline counts them.
  frame_id LONG,
  -- When the frame began.
  ts TIMESTAMP,
  -- Duration of the frame in nanoseconds.
  dur DURATION,
  -- The slice Choreographer#doFrame: row of slice.
  do_frame_id JOINID(slice.id),
  -- The slice DrawFrame: row of slice.
  draw_frame_id JOINID(slice.id),
  -- The frame as it came: row of slice.
  actual_frame_timeline_id JOINID(slice.id),
  -- The planned frame: row of slice.
  expected_frame_timeline_id JOINID(slice.id),
  -- The thread that draws: row of thread.
  render_thread_utid JOINID(thread.id),
  -- The thread of the user interface: row of thread.
  ui_thread_utid JOINID(thread.id),
  -- How many rows the frame has among actual frames.
  actual_frame_timeline_count LONG,
  -- How many rows the frame has among planned frames.
  expected_frame_timeline_count LONG,
  -- How many slices DrawFrame it has.
  draw_frame_count LONG,
  -- Row of process.
  upid JOINID(process.id),
  -- Name of the process.
  process_name STRING
) AS
SELECT
  frame_id,
  min(ts) AS ts,
  max(dur) AS dur,
  min(do_frame_id) AS do_frame_id,
  min(draw_frame_id) AS draw_frame_id,
  min(actual_frame_timeline_id) AS actual_frame_timeline_id,
  min(expected_frame_timeline_id) AS expected_frame_timeline_id,
  render_thread_utid,
  ui_thread_utid,
  count(DISTINCT actual_frame_timeline_id) AS actual_frame_timeline_count,
  1 AS expected_frame_timeline_count,
  count(DISTINCT draw_frame_id) AS draw_frame_count,
  upid,
  process_name
FROM android_frames_layers
GROUP BY frame_id, upid
ORDER BY frame_id, upid;

-- The first frame after a moment, or no row.
CREATE PERFETTO FUNCTION android_first_frame_after(
  -- Not before this time.
  ts TIMESTAMP
)
RETURNS TABLE(
  -- Number of the frame, as the frame timeline counts them.
  frame_id LONG,
  -- When the frame began.
  ts TIMESTAMP,
  -- Duration of the frame in nanoseconds.
  dur DURATION,
  -- The slice Choreographer#doFrame: row of slice.
  do_frame_id JOINID(slice.id),
  -- The slice DrawFrame: row of slice.
  draw_frame_id JOINID(slice.id),
  -- The frame as it came: row of slice.
  actual_frame_timeline_id JOINID(slice.id),
  -- The planned frame: row of slice.
  expected_frame_timeline_id JOINID(slice.id),
  -- The thread that draws: row of thread.
  render_thread_utid JOINID(thread.id),
  -- The thread of the user interface: row of thread.
  ui_thread_utid JOINID(thread.id)
) AS
SELECT
  frame_id, ts, dur, do_frame_id, draw_frame_id, actual_frame_timeline_id, expected_frame_timeline_id,
  render_thread_utid, ui_thread_utid
FROM android_frames
WHERE ts > $ts
ORDER BY ts
LIMIT 1;
