-- Critical user journeys: what the user waits to see ("J<NAME>", judged by its frames) or to happen ("L<NAME>", judged
-- by its time), as processes of Android mark them.

INCLUDE PERFETTO MODULE android.frames.timeline;

-- Whether a slice is a journey's that is judged by frames: it lasts, has the name of one, and its process is one of Android's own.
CREATE PERFETTO MACRO _is_jank_slice(
  -- The slice.
  slice TableOrSubquery,
  -- Its process.
  process TableOrSubquery
)
RETURNS Expr AS
(
  $slice.dur > 0 AND $slice.name GLOB 'J<*>'
  AND ($process.name GLOB 'com.android.*' OR $process.name GLOB 'com.google.android*')
);

-- Slices of processes that span a journey, numbered by time.
CREATE PERFETTO TABLE _jank_cujs_slices AS
SELECT
  row_number() OVER (ORDER BY s.ts, s.id) AS cuj_id,
  t.upid,
  p.name AS process_name,
  s.id AS slice_id,
  s.name AS cuj_slice_name,
  s.ts,
  s.dur,
  s.ts + s.dur AS ts_end
FROM slice AS s
JOIN process_track AS t ON t.id = s.track_id
JOIN process AS p USING (upid)
WHERE _is_jank_slice!(s, p)
ORDER BY cuj_id;

-- NAME of "J<NAME>" or "L<NAME>".
CREATE PERFETTO FUNCTION _extract_cuj_name_from_slice(
  -- Name of the slice.
  cuj_slice_name STRING
)
RETURNS STRING AS
SELECT substr($cuj_slice_name, 3, length($cuj_slice_name) - 3);

-- Marks about journeys, wherever they are: "FT#…" on a track of the journey's name, or "J<NAME>#FT#…" and
-- "J<NAME>#UIThread" anywhere in the process.
CREATE PERFETTO TABLE _cuj_marks AS
SELECT
  s.ts,
  s.name AS marker_name,
  coalesce(regexp_extract(s.name, '^(J<.*>)#(?:FT#|UIThread$)'), iif(s.name GLOB 'FT#*', t.name, NULL)) AS cuj_slice_name,
  h.utid,
  coalesce(p.upid, h.upid) AS upid
FROM slice AS s
JOIN track AS t ON t.id = s.track_id
LEFT JOIN process_track AS p ON p.id = s.track_id
LEFT JOIN thread_track AS tt ON tt.id = s.track_id
LEFT JOIN thread AS h ON h.utid = tt.utid
WHERE s.name GLOB '*FT#*' OR s.name GLOB 'J<*>#UIThread';

-- Those of each journey, with what they tell: 'begin', 'end', 'cancel', 'deferMonitoring', 'layerId', 'UIThread' or 'other'.
CREATE PERFETTO TABLE _cuj_state_markers AS
SELECT
  c.cuj_id,
  c.upid,
  CASE
    WHEN m.marker_name GLOB '*FT#begin*' THEN 'begin'
    WHEN m.marker_name GLOB '*FT#deferMonitoring*' THEN 'deferMonitoring'
    WHEN m.marker_name GLOB '*FT#end*' THEN 'end'
    WHEN m.marker_name GLOB '*FT#cancel*' THEN 'cancel'
    WHEN m.marker_name GLOB '*FT#layerId*' THEN 'layerId'
    WHEN m.marker_name GLOB '*#UIThread' THEN 'UIThread'
    ELSE 'other'
  END AS marker_type,
  m.marker_name,
  m.utid
FROM _jank_cujs_slices AS c
JOIN _cuj_marks AS m
  ON m.cuj_slice_name = c.cuj_slice_name AND m.ts >= c.ts AND m.ts < c.ts_end AND coalesce(m.upid, c.upid) = c.upid;

-- The number behind a word of the marks, as "layerId#12".
CREATE PERFETTO MACRO _cuj_number(
  -- Names of the marks.
  name Expr,
  -- The word.
  word Expr
)
RETURNS Expr AS max(cast_int!(regexp_extract($name, $word || '#(-?[0-9]+)')));

-- What the marks tell about each journey.
CREATE PERFETTO TABLE _cuj_instant_events AS
SELECT
  c.cuj_id,
  c.upid,
  _cuj_number!(m.marker_name, 'layerId') AS layer_id,
  _cuj_number!(m.marker_name, 'beginVsync') AS begin_vsync,
  _cuj_number!(m.marker_name, 'endVsync') AS end_vsync,
  max(iif(m.marker_type = 'UIThread', m.utid, NULL)) AS ui_thread,
  CASE
    WHEN max(m.marker_type = 'cancel') THEN 'canceled'
    WHEN max(m.marker_type = 'end') THEN 'completed'
  END AS state
FROM _jank_cujs_slices AS c
LEFT JOIN _cuj_state_markers AS m USING (cuj_id)
GROUP BY c.cuj_id;

-- A frame of a journey's thread counts when its number is between the marks and it begins or ends within the slice.
-- One row for each layer that it drew to.
CREATE PERFETTO TABLE _all_frames_in_cuj AS
SELECT
  _extract_cuj_name_from_slice(c.cuj_slice_name) AS cuj_name,
  c.upid,
  c.process_name,
  m.layer_id AS cuj_layer_id,
  f.layer_id,
  f.layer_name,
  f.frame_id,
  f.do_frame_id,
  f.expected_frame_timeline_id,
  c.cuj_id,
  f.ts AS frame_ts,
  f.dur,
  f.ts_end,
  f.ui_thread_utid,
  f.render_thread_utid
FROM _jank_cujs_slices AS c
JOIN _cuj_instant_events AS m USING (cuj_id)
JOIN android_frames_layers AS f
  ON f.ui_thread_utid = m.ui_thread AND f.frame_id BETWEEN m.begin_vsync AND m.end_vsync
WHERE f.layer_id IS NOT NULL AND (f.ts BETWEEN c.ts AND c.ts_end OR f.ts_end BETWEEN c.ts AND c.ts_end);

-- Frames by number, from the first start to the last end of their layers.
CREATE PERFETTO TABLE _android_distinct_frames_in_cuj AS
SELECT
  row_number() OVER (PARTITION BY cuj_id ORDER BY min(frame_ts)) AS frame_idx,
  count() OVER (PARTITION BY cuj_id) AS frame_cnt,
  cuj_name,
  upid,
  cuj_layer_id,
  layer_id,
  layer_name,
  process_name,
  frame_id,
  do_frame_id,
  expected_frame_timeline_id,
  cuj_id,
  ui_thread_utid,
  render_thread_utid,
  min(frame_ts) AS frame_ts,
  max(ts_end) AS ts_end,
  max(ts_end) - min(frame_ts) AS dur
FROM _all_frames_in_cuj
GROUP BY cuj_id, frame_id;

-- Frames by number and layer.
CREATE PERFETTO VIEW _android_distinct_frames_layers_cuj AS
SELECT
  cuj_name, upid, cuj_layer_id, layer_id, layer_name, process_name, frame_id, do_frame_id, expected_frame_timeline_id,
  cuj_id, ui_thread_utid, render_thread_utid, min(frame_ts) AS frame_ts, ts_end, dur
FROM _all_frames_in_cuj
GROUP BY cuj_id, frame_id, layer_id;

-- Turns of the journey's thread, or else of the main thread, that overlap it.
CREATE PERFETTO TABLE _android_jank_cuj_do_frames AS
SELECT c.cuj_id, m.ui_thread, t.utid, f.id, f.frame_id AS vsync, f.ts, c.upid, s.ts + s.dur AS ts_end, s.track_id
FROM _jank_cujs_slices AS c
JOIN _cuj_instant_events AS m USING (cuj_id)
JOIN thread AS t ON t.upid = c.upid AND iif(m.ui_thread IS NULL, t.is_main_thread, t.utid = m.ui_thread)
JOIN android_frames_choreographer_do_frame AS f ON f.ui_thread_utid = t.utid
JOIN slice AS s ON s.id = f.id
WHERE
  s.ts + s.dur >= c.ts
  AND s.ts <= c.ts_end
  AND f.frame_id >= coalesce(m.begin_vsync, f.frame_id)
  AND f.frame_id <= coalesce(m.end_vsync, f.frame_id)
ORDER BY c.cuj_id, f.frame_id;

-- The layer that a journey draws to: the one that it marks, or else the only one that it has in each frame.
CREATE PERFETTO TABLE android_jank_cuj_layer_name(
  -- The journey.
  cuj_id LONG,
  -- Name of the layer.
  layer_name STRING
) AS
WITH
  layers AS (
    SELECT cuj_id, frame_id, cuj_layer_id IS NOT NULL AS marked, max(layer_name) AS layer_name,
      count(DISTINCT layer_name) AS n
    FROM _all_frames_in_cuj
    WHERE layer_id = coalesce(cuj_layer_id, layer_id)
    GROUP BY cuj_id, frame_id
  )
SELECT cuj_id, max(layer_name) AS layer_name
FROM layers
GROUP BY cuj_id
HAVING max(marked) OR max(n) = 1
ORDER BY max(marked) DESC, cuj_id;

-- Journeys judged by their frames. Those that were called off are not here, nor, of releases that do not tell, those of 4 ms
-- and less.
CREATE PERFETTO TABLE android_jank_cuj(
  -- Number of the journey.
  cuj_id LONG,
  -- Its process.
  upid JOINID(process.id),
  -- Name of the process.
  process_name STRING,
  -- Name of its slice, "J<NAME>".
  cuj_slice_name STRING,
  -- NAME alone.
  cuj_name STRING,
  -- Its slice.
  slice_id JOINID(slice.id),
  -- Start of the slice.
  ts TIMESTAMP,
  -- End of the slice.
  ts_end TIMESTAMP,
  -- Length of the slice.
  dur DURATION,
  -- 'completed', or NULL when the release does not tell.
  state STRING,
  -- The thread whose frames count, if known.
  ui_thread JOINID(thread.id),
  -- The layer that it draws to, if known.
  layer_id LONG,
  -- Number of its first frame, if known.
  begin_vsync LONG,
  -- Number of its last frame, if known.
  end_vsync LONG
) AS
SELECT
  c.cuj_id,
  c.upid,
  c.process_name,
  c.slice_id,
  c.cuj_slice_name,
  c.ts,
  c.dur,
  c.ts_end,
  _extract_cuj_name_from_slice(c.cuj_slice_name) AS cuj_name,
  m.state,
  m.ui_thread,
  m.layer_id,
  m.begin_vsync,
  m.end_vsync
FROM _jank_cujs_slices AS c
JOIN _cuj_instant_events AS m USING (cuj_id)
WHERE iif(m.state IS NULL, c.dur > 4000000, m.state != 'canceled')
ORDER BY c.ts;
