-- Critical user journeys of the system's user interface and of applications that mark them the same way, and what held them up.

INCLUDE PERFETTO MODULE android.critical_blocking_calls;
INCLUDE PERFETTO MODULE android.cujs.base;
INCLUDE PERFETTO MODULE android.frames.timeline;
INCLUDE PERFETTO MODULE android.render_thread;

-- Journeys judged by their frames, from when the first frame was planned to the end of the last turn.
CREATE PERFETTO TABLE android_sysui_jank_cujs(
  -- Number of the journey; jank and latency are numbered each by itself.
  cuj_id LONG,
  -- Its process.
  upid JOINID(process.id),
  -- Name of the process.
  process_name STRING,
  -- Name of its slice.
  cuj_slice_name STRING,
  -- NAME of "J<NAME>" or "L<NAME>".
  cuj_name STRING,
  -- Its slice.
  slice_id JOINID(slice.id),
  -- When it began: when its first frame was planned.
  ts TIMESTAMP,
  -- When it ended: with the last turn of its thread.
  ts_end TIMESTAMP,
  -- How long it took.
  dur DURATION,
  -- 'completed', or NULL when the release does not tell; those that were called off are not here.
  state STRING,
  -- The thread whose frames count.
  ui_thread JOINID(thread.id),
  -- The layer that it draws to, if known.
  layer_id LONG,
  -- Number of its first frame, if known.
  begin_vsync LONG,
  -- Number of its last frame, if known.
  end_vsync LONG
) AS
WITH
  ends AS (
    SELECT
      f.cuj_id,
      min(e.ts) AS ts,
      max(s.ts + s.dur) AS ts_end
    FROM _android_distinct_frames_in_cuj AS f
    JOIN slice AS s ON s.id = f.do_frame_id
    LEFT JOIN expected_frame_timeline_slice AS e ON e.id = f.expected_frame_timeline_id
    WHERE f.frame_idx IN (1, f.frame_cnt)
    GROUP BY f.cuj_id
  )
SELECT
  c.cuj_id,
  c.upid,
  c.process_name,
  c.cuj_slice_name,
  c.cuj_name,
  c.slice_id,
  e.ts,
  e.ts_end,
  e.ts_end - e.ts AS dur,
  c.state,
  c.ui_thread,
  c.layer_id,
  c.begin_vsync,
  c.end_vsync
FROM android_jank_cuj AS c
JOIN ends AS e USING (cuj_id)
ORDER BY e.ts;

-- The tracks that are called as journeys are, where they leave marks.
CREATE PERFETTO TABLE _latency_cuj_tracks AS
SELECT id, name
FROM track
WHERE name GLOB 'L<*>';

-- Marks on the journeys' tracks that they did not end well: (cuj_slice_id, marker_type).
CREATE PERFETTO TABLE _latency_cuj_markers AS
SELECT c.id AS cuj_slice_id, s.name AS marker_type
FROM slice AS c
JOIN _latency_cuj_tracks AS t ON t.name = c.name
JOIN slice AS s ON s.track_id = t.id
WHERE c.name GLOB 'L<*>' AND s.dur = 0 AND s.name IN ('cancel', 'timeout') AND s.ts BETWEEN c.ts AND c.ts + c.dur;

-- Journeys judged by their time, of all processes.
CREATE PERFETTO TABLE android_sysui_latency_cujs(
  -- Number of the journey; jank and latency are numbered each by itself.
  cuj_id LONG,
  -- Its process.
  upid JOINID(process.id),
  -- Name of the process.
  process_name STRING,
  -- Name of its slice.
  cuj_slice_name STRING,
  -- NAME of "J<NAME>" or "L<NAME>".
  cuj_name STRING,
  -- Its slice.
  slice_id JOINID(slice.id),
  -- When it began.
  ts TIMESTAMP,
  -- When it ended.
  ts_end TIMESTAMP,
  -- How long it took.
  dur DURATION,
  -- 'completed', 'canceled' or 'timeout'.
  state STRING
) AS
SELECT
  row_number() OVER (ORDER BY s.ts, s.id) AS cuj_id,
  p.upid,
  p.name AS process_name,
  s.name AS cuj_slice_name,
  _extract_cuj_name_from_slice(s.name) AS cuj_name,
  s.id AS slice_id,
  s.ts,
  s.ts + s.dur AS ts_end,
  s.dur,
  CASE
    WHEN EXISTS (SELECT 1 FROM _latency_cuj_markers AS m WHERE m.cuj_slice_id = s.id AND m.marker_type = 'cancel') THEN 'canceled'
    WHEN EXISTS (SELECT 1 FROM _latency_cuj_markers AS m WHERE m.cuj_slice_id = s.id) THEN 'timeout'
    ELSE 'completed'
  END AS state
FROM slice AS s
JOIN process_track AS t ON t.id = s.track_id
JOIN process AS p USING (upid)
WHERE s.name GLOB 'L<*>' AND s.dur > 0
ORDER BY 1;

-- Both, numbered anew: those judged by their frames first.
CREATE PERFETTO TABLE android_jank_latency_cujs(
  -- Number of the journey, in this table alone.
  cuj_id LONG,
  -- The same as cuj_id.
  id LONG,
  -- Its process.
  upid JOINID(process.id),
  -- Name of the process.
  process_name STRING,
  -- Name of its slice.
  cuj_slice_name STRING,
  -- NAME of "J<NAME>" or "L<NAME>".
  cuj_name STRING,
  -- Its slice.
  slice_id JOINID(slice.id),
  -- When it began.
  ts TIMESTAMP,
  -- When it ended.
  ts_end TIMESTAMP,
  -- How long it took.
  dur DURATION,
  -- How it ended, where the release tells.
  state STRING,
  -- The thread whose frames count; of a journey judged by its time, the main one.
  ui_thread JOINID(thread.id),
  -- The layer that it draws to, if known.
  layer_id LONG,
  -- Number of its first frame, if known.
  begin_vsync LONG,
  -- Number of its last frame, if known.
  end_vsync LONG,
  -- 'jank' or 'latency'.
  cuj_type STRING
) AS
WITH
  journeys AS (
    SELECT
      cuj_id AS number, upid, process_name, cuj_slice_name, cuj_name, slice_id, ts, ts_end, dur, state, ui_thread, layer_id,
      begin_vsync, end_vsync, 'jank' AS cuj_type
    FROM android_sysui_jank_cujs
    UNION ALL
    SELECT
      cuj_id, upid, process_name, cuj_slice_name, cuj_name, slice_id, ts, ts_end, dur, state,
      (SELECT min(t.utid) FROM thread AS t WHERE t.upid = c.upid AND t.is_main_thread), NULL, NULL, NULL, 'latency'
    FROM android_sysui_latency_cujs AS c
  )
SELECT
  row_number() OVER (ORDER BY cuj_type, number) AS cuj_id,
  row_number() OVER (ORDER BY cuj_type, number) AS id,
  upid,
  process_name,
  cuj_slice_name,
  cuj_name,
  slice_id,
  ts,
  ts_end,
  dur,
  state,
  ui_thread,
  layer_id,
  begin_vsync,
  end_vsync,
  cuj_type
FROM journeys
ORDER BY 1;

-- What held up the threads that matter, cut to the journeys.
CREATE PERFETTO TABLE android_cuj_blocking_calls(
  -- Slice of the work.
  slice_id JOINID(slice.id),
  -- What it is, without what is different each time.
  name STRING,
  -- When it began within the journey.
  ts TIMESTAMP,
  -- How long it took within the journey.
  dur DURATION,
  -- When it ended within the journey.
  ts_end TIMESTAMP,
  -- The journey.
  cuj_id LONG,
  -- Its name.
  cuj_name STRING,
  -- Name of the process.
  process_name STRING,
  -- The process.
  upid JOINID(process.id),
  -- The thread that was held up: that of the user interface or the one that draws.
  utid JOINID(thread.id)
) AS
SELECT
  b.id AS slice_id,
  b.name,
  max(b.ts, c.ts) AS ts,
  min(b.ts_end, c.ts_end) - max(b.ts, c.ts) AS dur,
  min(b.ts_end, c.ts_end) AS ts_end,
  c.cuj_id,
  c.cuj_name,
  b.process_name,
  b.upid,
  b.utid
FROM android_jank_latency_cujs AS c
JOIN _android_critical_blocking_calls AS b ON b.upid = c.upid AND b.ts < c.ts_end AND b.ts_end > c.ts
WHERE b.utid = c.ui_thread OR b.utid IN (SELECT render_thread_utid FROM _render_thread_per_process)
ORDER BY c.cuj_type, c.cuj_id, b.ts;
