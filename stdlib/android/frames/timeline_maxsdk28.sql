-- Frames of Android 9 and before, whose slices tell no number: the first drawing within or after a Choreographer's turn.

INCLUDE PERFETTO MODULE slices.with_context;

CREATE PERFETTO TABLE _frames_maxsdk_28 AS
WITH
  turns AS (
    SELECT
      id,
      ts,
      dur,
      utid,
      upid,
      lead(ts, 1, trace_end()) OVER (PARTITION BY upid ORDER BY ts) AS next_ts
    FROM thread_slice
    WHERE is_main_thread AND name = 'Choreographer#doFrame'
  )
SELECT
  row_number() OVER (ORDER BY t.ts) AS frame_id,
  t.ts,
  max(d.ts + d.dur) - t.ts AS dur,
  t.id AS do_frame_id,
  min(d.id) AS draw_frame_id,
  count() AS draw_frame_count,
  d.utid AS render_thread_utid,
  t.utid AS ui_thread_utid,
  t.upid
FROM turns AS t
JOIN thread_slice AS d ON d.upid = t.upid AND d.name = 'DrawFrame' AND d.ts >= t.ts AND d.ts < t.next_ts
GROUP BY t.id;
