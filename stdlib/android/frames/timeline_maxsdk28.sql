-- Frames of Android 9 and before, whose slices tell no number: each drawing up to the next turn of the Choreographer.

INCLUDE PERFETTO MODULE slices.with_context;

-- The frames, numbered from 1; a turn with several drawings has several.
CREATE PERFETTO TABLE _frames_maxsdk_28(
  -- Number of the frame.
  frame_id LONG,
  -- When the turn began.
  ts TIMESTAMP,
  -- From there to the end of the turn's last drawing.
  dur DURATION,
  -- The turn: row of slice.
  do_frame_id JOINID(slice.id),
  -- The drawing: row of slice.
  draw_frame_id JOINID(slice.id),
  -- The thread that draws.
  render_thread_utid JOINID(thread.id),
  -- The thread of the user interface.
  ui_thread_utid JOINID(thread.id),
  -- Which releases mark frames so: always "maxsdk28".
  sdk STRING,
  -- The process.
  upid JOINID(process.id),
  -- Name of the process.
  process_name STRING
) AS
WITH
  turns AS (
    SELECT
      id,
      ts,
      utid,
      upid,
      process_name,
      lead(ts, 1, trace_end()) OVER (PARTITION BY upid ORDER BY ts) AS next_ts
    FROM thread_slice
    WHERE is_main_thread AND name = 'Choreographer#doFrame'
  )
SELECT
  row_number() OVER (ORDER BY t.ts, t.id, d.id) AS frame_id,
  t.ts,
  max(d.ts + d.dur) OVER (PARTITION BY t.id) - t.ts AS dur,
  t.id AS do_frame_id,
  d.id AS draw_frame_id,
  d.utid AS render_thread_utid,
  t.utid AS ui_thread_utid,
  t.upid,
  t.process_name,
  'maxsdk28' AS sdk
FROM turns AS t
JOIN thread_slice AS d ON d.upid = t.upid AND d.name = 'DrawFrame' AND d.ts >= t.ts AND d.ts < t.next_ts
ORDER BY t.ts, t.id, d.id;
