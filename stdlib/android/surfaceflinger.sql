-- Frames of applications and the frames of the compositor that showed them.

INCLUDE PERFETTO MODULE android.cujs.base;

CREATE PERFETTO TABLE _android_sf_process AS
SELECT upid, pid, name FROM process WHERE name = '/system/bin/surfaceflinger';

-- Its threads with their tracks: (upid, utid, name, track_id, is_main_thread).
CREATE PERFETTO TABLE _android_sf_threads AS
SELECT p.upid, t.utid, t.name, k.id AS track_id, t.is_main_thread
FROM _android_sf_process AS p
JOIN thread AS t USING (upid)
JOIN thread_track AS k USING (utid);

CREATE PERFETTO VIEW _android_sf_main_thread AS
SELECT upid, utid, name, track_id FROM _android_sf_threads WHERE is_main_thread;

-- Those of a name.
CREATE PERFETTO FUNCTION _android_sf_thread(
  -- The name.
  thread_name STRING
)
RETURNS TABLE(
  -- The compositor.
  upid JOINID(process.id),
  -- The thread.
  utid JOINID(thread.id),
  -- Its name.
  name STRING,
  -- The track of its slices.
  track_id JOINID(track.id)
) AS
SELECT upid, utid, name, track_id FROM _android_sf_threads WHERE name = $thread_name;

-- By the flow from one timeline to the other.
CREATE PERFETTO TABLE android_app_to_sf_frame_timeline_match(
  -- The application: row of process.
  app_upid JOINID(process.upid),
  -- Number of the application's frame.
  app_vsync LONG,
  -- SurfaceFlinger: row of process.
  sf_upid JOINID(process.upid),
  -- Number of SurfaceFlinger's frame.
  sf_vsync LONG
) AS
SELECT DISTINCT
  a.upid AS app_upid,
  cast_int!(a.name) AS app_vsync,
  s.upid AS sf_upid,
  cast_int!(s.name) AS sf_vsync
FROM actual_frame_timeline_slice AS a
JOIN flow AS f ON f.slice_out = a.id
JOIN actual_frame_timeline_slice AS s ON s.id = f.slice_in
WHERE s.upid IN (SELECT upid FROM _android_sf_process)
ORDER BY 1, 2, 3, 4;

-- A number that the compositor told of a piece of work.
CREATE PERFETTO MACRO _android_sf_workload_number(
  -- Name of the field, below surfaceflinger_workload.
  field Expr
)
RETURNS Expr AS max(a.int_value) FILTER (WHERE a.key = 'surfaceflinger_workload.' || $field);

-- A text that it told.
CREATE PERFETTO MACRO _android_sf_workload_text(
  -- Name of the field, below surfaceflinger_workload.
  field Expr
)
RETURNS Expr AS max(a.string_value) FILTER (WHERE a.key = 'surfaceflinger_workload.' || $field);

-- What the compositor told of its pieces of work (`surfaceflinger_workload` of instant events). NULL: not told.
CREATE PERFETTO TABLE android_surfaceflinger_workloads(
  -- When it told.
  ts TIMESTAMP,
  -- What the work came from.
  source STRING,
  -- The output that is drawn for.
  output_name STRING,
  -- Number of SurfaceFlinger's frame.
  sf_vsync LONG,
  -- Processor time of the frame's signal, in nanoseconds.
  sf_cpu_frame_signal_nanos LONG,
  -- Processor time of commit, in nanoseconds.
  sf_cpu_commit_nanos LONG,
  -- Processor time of composite, in nanoseconds.
  sf_cpu_composite_nanos LONG,
  -- Time in the hardware composer's present, in nanoseconds.
  hwc_present_nanos LONG,
  -- Time in the hardware composer's validate, in nanoseconds.
  hwc_validate_nanos LONG,
  -- Time in the hardware composer's present-or-validate, in nanoseconds.
  hwc_present_or_validate_nanos LONG,
  -- Time in which the render engine draws layers, in nanoseconds.
  re_draw_layers_nanos LONG,
  -- Time until the GPU was done with the render engine's work, in nanoseconds.
  re_gpu_completion_nanos LONG,
  -- Time in which Skia flushes its surface, in nanoseconds.
  skia_flush_nanos LONG,
  -- Time in which Skia hands work to the GPU, in nanoseconds.
  skia_submit_nanos LONG,
  -- Layers that the GPU put together.
  gpu_composited_layers LONG,
  -- Layers that the display hardware put together.
  dpu_composited_layers LONG
) AS
SELECT
  min(i.ts) AS ts,
  _android_sf_workload_text!('source') AS source,
  _android_sf_workload_text!('output_name') AS output_name,
  _android_sf_workload_number!('vsync_id') AS sf_vsync,
  _android_sf_workload_number!('summary.timings.sf_cpu.frame_signal_nanos') AS sf_cpu_frame_signal_nanos,
  _android_sf_workload_number!('summary.timings.sf_cpu.commit_nanos') AS sf_cpu_commit_nanos,
  _android_sf_workload_number!('summary.timings.sf_cpu.composite_nanos') AS sf_cpu_composite_nanos,
  _android_sf_workload_number!('summary.timings.hwc.present_nanos') AS hwc_present_nanos,
  _android_sf_workload_number!('summary.timings.hwc.validate_nanos') AS hwc_validate_nanos,
  _android_sf_workload_number!('summary.timings.hwc.present_or_validate_nanos') AS hwc_present_or_validate_nanos,
  _android_sf_workload_number!('summary.timings.re.draw_layers_nanos') AS re_draw_layers_nanos,
  _android_sf_workload_number!('summary.timings.re.gpu_completion_nanos') AS re_gpu_completion_nanos,
  _android_sf_workload_number!('summary.timings.skia.flush_nanos') AS skia_flush_nanos,
  _android_sf_workload_number!('summary.timings.skia.submit_nanos') AS skia_submit_nanos,
  _android_sf_workload_number!('summary.stats.gpu_composited_layers') AS gpu_composited_layers,
  _android_sf_workload_number!('summary.stats.dpu_composited_layers') AS dpu_composited_layers
FROM instant AS i
JOIN args AS a USING (arg_set_id)
WHERE a.key GLOB 'surfaceflinger_workload*'
GROUP BY i.arg_set_id;

-- The compositor's frames that showed the journeys' frames.
CREATE PERFETTO TABLE _android_jank_cuj_app_sf_frame_timeline_match AS
SELECT DISTINCT f.cuj_id, f.upid AS app_upid, m.app_vsync, m.sf_upid, m.sf_vsync
FROM _android_jank_cuj_do_frames AS f
JOIN android_app_to_sf_frame_timeline_match AS m ON m.app_vsync = f.vsync AND m.app_upid = f.upid;

-- The compositor's main thread by the numbers in its names: (track_id, utid, upid, id, vsync).
CREATE PERFETTO TABLE _android_sf_turns AS
SELECT m.track_id, m.utid, m.upid, s.id, cast_int!(regexp_extract(s.name, '^[^ ]+ (-?[0-9]+)')) AS vsync
FROM _android_sf_main_thread AS m
JOIN slice AS s USING (track_id)
WHERE s.dur > 0 AND (s.name GLOB 'commit *' OR s.name GLOB 'composite *' OR s.name GLOB 'onMessageInvalidate *');

-- Those for journeys.
CREATE PERFETTO FUNCTION _find_android_jank_cuj_sf_main_thread_slice(
  -- What the names look like.
  slice_name_glob STRING
)
RETURNS TABLE(
  -- The journey.
  cuj_id LONG,
  -- The compositor's main thread.
  utid JOINID(thread.id),
  -- Number of its frame.
  vsync LONG,
  -- The slice.
  id JOINID(slice.id),
  -- Its name.
  name STRING,
  -- Its start.
  ts TIMESTAMP,
  -- Its length.
  dur DURATION,
  -- Its end.
  ts_end TIMESTAMP
) AS
WITH frames AS (SELECT DISTINCT cuj_id, sf_upid, sf_vsync FROM _android_jank_cuj_app_sf_frame_timeline_match)
SELECT f.cuj_id, t.utid, t.vsync, s.id, s.name, s.ts, s.dur, s.ts + s.dur AS ts_end
FROM frames AS f
JOIN _android_sf_turns AS t ON t.upid = f.sf_upid AND t.vsync = f.sf_vsync
JOIN slice AS s ON s.id = t.id
WHERE s.name GLOB $slice_name_glob
ORDER BY f.cuj_id, t.vsync, s.ts;

CREATE PERFETTO TABLE _android_jank_cuj_sf_commit_slice AS
SELECT * FROM _find_android_jank_cuj_sf_main_thread_slice('commit *');

CREATE PERFETTO TABLE _android_jank_cuj_sf_composite_slice AS
SELECT * FROM _find_android_jank_cuj_sf_main_thread_slice('composite *');

-- In old releases, all of a turn.
CREATE PERFETTO TABLE _android_jank_cuj_sf_on_message_invalidate_slice AS
SELECT * FROM _find_android_jank_cuj_sf_main_thread_slice('onMessageInvalidate *');

-- The compositor's frames: from when they were planned to the end of "composite", or of the whole turn in old releases.
CREATE PERFETTO TABLE _android_jank_cuj_sf_main_thread_frame_boundary AS
WITH
  turns AS (
    SELECT a.cuj_id, a.utid, a.vsync, a.ts, b.ts_end
    FROM _android_jank_cuj_sf_commit_slice AS a
    JOIN _android_jank_cuj_sf_composite_slice AS b USING (cuj_id, utid, vsync)
    UNION ALL
    SELECT cuj_id, utid, vsync, ts, ts_end FROM _android_jank_cuj_sf_on_message_invalidate_slice
  )
SELECT
  t.cuj_id,
  t.utid,
  t.vsync,
  e.ts,
  t.ts AS ts_main_thread_start,
  t.ts_end,
  t.ts_end - e.ts AS dur
FROM turns AS t
JOIN thread AS h USING (utid)
JOIN expected_frame_timeline_slice AS e ON e.upid = h.upid AND cast_int!(e.name) = t.vsync;
