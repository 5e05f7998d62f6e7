-- The frames of critical user journeys: which were late, and whose fault that was.

INCLUDE PERFETTO MODULE android.cujs.base;
INCLUDE PERFETTO MODULE android.cujs.boundaries;
INCLUDE PERFETTO MODULE android.cujs.relevant_slices;
INCLUDE PERFETTO MODULE android.cujs.threads;
INCLUDE PERFETTO MODULE android.frames.jank_type;
INCLUDE PERFETTO MODULE android.frames.timeline;
INCLUDE PERFETTO MODULE android.surfaceflinger;

-- The time that a frame has when it is not told: of 60 a second.
CREATE PERFETTO MACRO _frame_dur_by_default()
RETURNS Expr AS 16600000;

-- What the timeline tells of a journey's layer by number of the frame, of any process where the layer is not known: (cuj_id, vsync,
-- cuj_upid, and the slice's columns).
CREATE PERFETTO TABLE _cuj_actual_frames AS
SELECT
  b.cuj_id,
  cast_int!(a.name) AS vsync,
  b.upid AS cuj_upid,
  a.*
FROM _android_jank_cuj_vsync_boundary AS b
JOIN actual_frame_timeline_slice AS a ON cast_int!(a.name) BETWEEN b.vsync_min AND b.vsync_max
LEFT JOIN android_jank_cuj_layer_name AS l ON l.cuj_id = b.cuj_id
WHERE l.layer_name IS NULL OR a.layer_name = l.layer_name;

-- By frame, over its layers: a fault in one of them is one of the frame.
CREATE PERFETTO TABLE _android_jank_cuj_frame_timeline AS
SELECT
  a.cuj_id,
  a.vsync,
  max(android_is_app_jank_type(a.jank_type)) AS app_missed,
  max(android_is_sf_jank_type(a.jank_type)) AS sf_missed,
  coalesce(max(abs(a.jank_score)), 0) AS jank_score,
  coalesce(max(m.sf_callback_missed), 0) AS sf_callback_missed,
  coalesce(max(m.hwui_callback_missed), 0) AS hwui_callback_missed,
  min(a.on_time_finish) AS on_time_finish,
  max(a.ts + a.dur) AS ts_end_actual,
  max(a.dur) AS dur,
  coalesce(max(e.dur), _frame_dur_by_default!()) AS dur_expected,
  count(DISTINCT a.layer_name) AS number_of_layers_for_frame,
  max(a.layer_name) AS frame_layer_name
FROM _cuj_actual_frames AS a
LEFT JOIN expected_frame_timeline_slice AS e ON e.upid = a.upid AND e.name = a.name
LEFT JOIN _vsync_missed_callback AS m ON m.vsync = a.vsync
WHERE a.dur > 0
GROUP BY a.cuj_id, a.vsync;

-- Frames of the application, over all threads; those that drew nothing are not here.
CREATE PERFETTO TABLE _android_jank_cuj_frame AS
WITH
  fences AS (
    SELECT d.cuj_id, d.vsync, count(f.fence_idx) AS gpu_fence_count
    FROM _android_jank_cuj_draw_frame_slice AS d
    JOIN _android_jank_cuj_gpu_completion_fence AS f ON f.cuj_id = d.cuj_id AND f.draw_frame_slice_id = d.id
    GROUP BY d.cuj_id, d.vsync
  ),
  frames AS (
    SELECT
      b.cuj_id,
      row_number() OVER (PARTITION BY b.cuj_id ORDER BY b.vsync) AS frame_number,
      b.vsync,
      b.ts,
      b.ts_expected,
      b.ts_do_frame_start,
      f.gpu_fence_count,
      f.gpu_fence_count > 0 AS drew_anything
    FROM _android_jank_cuj_main_thread_frame_boundary AS b
    JOIN fences AS f USING (cuj_id, vsync)
  )
SELECT
  f.*,
  t.app_missed,
  t.sf_missed,
  t.jank_score,
  t.sf_callback_missed,
  t.hwui_callback_missed,
  t.on_time_finish,
  t.ts_end_actual - f.ts AS dur,
  t.ts_end_actual - f.ts_do_frame_start AS dur_unadjusted,
  t.dur_expected,
  t.ts_end_actual AS ts_end
FROM frames AS f
JOIN _android_jank_cuj_frame_timeline AS t USING (cuj_id, vsync);

-- Frames of the compositor.
CREATE PERFETTO TABLE _android_jank_cuj_sf_frame AS
WITH
  shown AS (SELECT DISTINCT cuj_id, display_frame_token AS vsync FROM _cuj_actual_frames WHERE upid = cuj_upid),
  frames AS (
    SELECT DISTINCT
      b.cuj_id,
      b.vsync,
      b.ts,
      b.ts_main_thread_start,
      b.ts_end,
      b.dur,
      a.jank_tag = 'Self Jank' AS sf_missed,
      NULL AS app_missed,
      a.jank_score,
      a.jank_tag,
      a.jank_type,
      a.prediction_type,
      a.present_type,
      a.gpu_composition,
      coalesce(e.dur, _frame_dur_by_default!()) AS dur_expected
    FROM _android_jank_cuj_sf_main_thread_frame_boundary AS b
    JOIN shown AS w USING (cuj_id, vsync)
    JOIN thread AS h ON h.utid = b.utid
    JOIN actual_frame_timeline_slice AS a ON a.upid = h.upid AND cast_int!(a.name) = b.vsync
    LEFT JOIN expected_frame_timeline_slice AS e ON e.upid = a.upid AND e.name = a.name
  )
SELECT *, row_number() OVER (PARTITION BY cuj_id ORDER BY vsync) AS frame_number FROM frames;

-- Each journey in one row, also those that were called off; of these the slice's own time, and no frames.
CREATE PERFETTO TABLE android_jank_cuj_slice_summary(
  -- Number of the journey.
  cuj_id LONG,
  -- Name of its slice, "J<NAME>".
  name STRING,
  -- Name of its process.
  process_name STRING,
  -- 'completed', 'canceled', or NULL when the release does not tell.
  state STRING,
  -- How many frames it had.
  total_frames LONG,
  -- How many of them the application was late with.
  missed_app_frames LONG,
  -- How many of them the compositor was late with.
  missed_sf_frames LONG,
  -- The layer that it drew to.
  layer_name STRING,
  -- Start of its first frame, or of the slice.
  ts TIMESTAMP,
  -- From there to the end of the last turn, or of the slice.
  dur DURATION,
  -- Track of its slice.
  track_id JOINID(track.id),
  -- Its slice.
  slice_id JOINID(slice.id)
) AS
WITH
  counts AS (
    SELECT
      cuj_id, count() AS total_frames, sum(app_missed) AS missed_app_frames, sum(sf_missed) AS missed_sf_frames
    FROM _android_jank_cuj_frame_timeline
    GROUP BY cuj_id
  )
SELECT
  c.cuj_id,
  c.cuj_slice_name AS name,
  c.process_name,
  m.state,
  n.total_frames,
  n.missed_app_frames,
  n.missed_sf_frames,
  l.layer_name,
  coalesce(b.ts, c.ts) AS ts,
  coalesce(b.dur, c.dur) AS dur,
  s.track_id,
  c.slice_id
FROM _jank_cujs_slices AS c
JOIN _cuj_instant_events AS m USING (cuj_id)
JOIN slice AS s ON s.id = c.slice_id
LEFT JOIN android_jank_cuj AS k ON k.cuj_id = c.cuj_id
LEFT JOIN counts AS n ON n.cuj_id = k.cuj_id
LEFT JOIN android_jank_cuj_layer_name AS l ON l.cuj_id = c.cuj_id
LEFT JOIN _android_jank_cuj_main_thread_cuj_boundary AS b ON b.cuj_id = k.cuj_id;
