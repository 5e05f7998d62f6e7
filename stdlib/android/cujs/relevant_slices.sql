-- The slices that make up the frames of critical user journeys, from the turn of the user interface to the display.

INCLUDE PERFETTO MODULE android.cujs.base;
INCLUDE PERFETTO MODULE android.cujs.threads;
INCLUDE PERFETTO MODULE android.surfaceflinger;

-- Number of the frame in "Choreographer#doFrame 7", "DrawFrames 7" or "commit 7".
CREATE PERFETTO FUNCTION _vsync_from_name(
  -- Name of the slice.
  slice_name STRING
)
RETURNS LONG AS
SELECT cast_int!(regexp_extract($slice_name, '^[^ ]+ (-?[0-9]+)'));

-- Number of the fence in names of slices that set one up or wait for it.
CREATE PERFETTO FUNCTION _gpu_completion_fence_id_from_name(
  -- Name of the slice.
  slice_name STRING
)
RETURNS LONG AS
SELECT
  cast_int!(regexp_extract(
    $slice_name,
    '^(?:(?:Trace )?GPU completion fence|waiting for GPU completion|Trace HWC release fence|waiting for HWC release) ([0-9]+)'
  ));

-- Turns of the main threads of journeys, with their number; of nested ones the innermost.
CREATE PERFETTO TABLE _cuj_turns AS
SELECT s.id, s.track_id, s.ts, s.ts + s.dur AS ts_end, _vsync_from_name(s.name) AS vsync
FROM slice AS s
WHERE
  s.track_id IN (SELECT track_id FROM _android_jank_cuj_main_thread)
  AND s.dur > 0
  AND s.name GLOB 'Choreographer#doFrame*'
  AND s.name NOT GLOB '*resynced*'
  AND NOT EXISTS (
    SELECT 1
    FROM descendant_slice(s.id) AS d
    WHERE d.name GLOB 'Choreographer#doFrame*' AND d.name NOT GLOB '*resynced*'
  );

-- Turns of the user interface; of turns inside each other the innermost.
CREATE PERFETTO TABLE _android_jank_cuj_do_frame_slice AS
SELECT c.cuj_id, m.upid, m.utid, s.*, f.ts_end, f.vsync
FROM android_jank_cuj AS c
JOIN _android_jank_cuj_main_thread AS m USING (cuj_id)
JOIN _cuj_turns AS f ON f.track_id = m.track_id
JOIN slice AS s ON s.id = f.id
WHERE
  f.ts_end >= c.ts
  AND f.ts <= c.ts_end
  AND f.vsync BETWEEN max(coalesce(c.begin_vsync, 1), 1) AND coalesce(c.end_vsync, 9223372036854775807);

-- Drawing for those turns; a frame with several layers has several.
CREATE PERFETTO TABLE _android_jank_cuj_draw_frame_slice AS
WITH
  drawings AS MATERIALIZED (
    SELECT id, track_id, _vsync_from_name(name) AS vsync
    FROM slice
    WHERE track_id IN (SELECT track_id FROM android_jank_cuj_render_thread) AND name GLOB 'DrawFrame*' AND dur > 0
  )
SELECT r.cuj_id, r.upid, r.utid, s.*, s.ts + s.dur AS ts_end, d.vsync
FROM (SELECT DISTINCT cuj_id, vsync FROM _android_jank_cuj_do_frames) AS f
JOIN android_jank_cuj_render_thread AS r USING (cuj_id)
JOIN drawings AS d ON d.track_id = r.track_id AND d.vsync = f.vsync
JOIN slice AS s ON s.id = d.id
ORDER BY r.cuj_id, r.utid, s.id;

-- Fences that slices set up somewhere inside: (cuj_id, vsync, slice_id, fence_idx).
CREATE PERFETTO MACRO _cuj_fences(
  -- Slices: cuj_id, vsync, id.
  slices TableOrSubquery,
  -- What the names inside look like.
  pattern Expr
)
RETURNS TableOrSubquery AS
(
  SELECT w.cuj_id, w.vsync, w.id AS slice_id, _gpu_completion_fence_id_from_name(d.name) AS fence_idx
  FROM $slices AS w
  JOIN descendant_slice(w.id) AS d
  WHERE d.name GLOB $pattern
);

-- When the GPU has drawn a frame.
CREATE PERFETTO TABLE _android_jank_cuj_gpu_completion_fence AS
SELECT cuj_id, vsync, slice_id AS draw_frame_slice_id, fence_idx
FROM _cuj_fences!(_android_jank_cuj_draw_frame_slice, '*GPU completion fence*');

-- When the display has let go of the buffer before.
CREATE PERFETTO TABLE _android_jank_cuj_hwc_release_fence AS
SELECT cuj_id, vsync, slice_id AS draw_frame_slice_id, fence_idx
FROM _cuj_fences!(_android_jank_cuj_draw_frame_slice, '*HWC release fence *');

-- Slices that wait for fences, on threads that do nothing else.
CREATE PERFETTO MACRO _cuj_fence_waits(
  -- Threads: track_id.
  threads TableOrSubquery,
  -- What the names look like.
  pattern Expr
)
RETURNS TableOrSubquery AS
(
  SELECT DISTINCT k.track_id, s.id, _gpu_completion_fence_id_from_name(s.name) AS fence_idx
  FROM $threads AS k
  JOIN slice AS s USING (track_id)
  WHERE s.name GLOB $pattern AND s.dur > 0
);

CREATE PERFETTO TABLE _android_jank_cuj_hwc_release_slice AS
SELECT f.cuj_id, f.vsync, s.*, s.ts + s.dur AS ts_end, f.fence_idx, f.draw_frame_slice_id
FROM _android_jank_cuj_hwc_release_fence AS f
JOIN _android_jank_cuj_hwc_release_thread AS k USING (cuj_id)
JOIN _cuj_fence_waits!(_android_jank_cuj_hwc_release_thread, 'waiting for HWC release *') AS w
  ON w.track_id = k.track_id AND w.fence_idx = f.fence_idx
JOIN slice AS s ON s.id = w.id;

CREATE PERFETTO TABLE _android_jank_cuj_gpu_completion_slice AS
SELECT f.cuj_id, f.vsync, s.*, s.ts + s.dur AS ts_end, h.ts_end AS hwc_release_ts_end, f.fence_idx
FROM _android_jank_cuj_gpu_completion_fence AS f
JOIN _android_jank_cuj_gpu_completion_thread AS k USING (cuj_id)
JOIN _cuj_fence_waits!(_android_jank_cuj_gpu_completion_thread, 'waiting for GPU completion *') AS w
  ON w.track_id = k.track_id AND w.fence_idx = f.fence_idx
JOIN slice AS s ON s.id = w.id
LEFT JOIN _android_jank_cuj_hwc_release_slice AS h USING (cuj_id, vsync, draw_frame_slice_id);

CREATE PERFETTO VIEW _android_jank_cuj_sf_root_slice AS
SELECT * FROM _android_jank_cuj_sf_commit_slice
UNION ALL
SELECT * FROM _android_jank_cuj_sf_composite_slice
UNION ALL
SELECT * FROM _android_jank_cuj_sf_on_message_invalidate_slice;

CREATE PERFETTO TABLE _android_jank_cuj_sf_gpu_completion_fence AS
SELECT cuj_id, vsync, slice_id AS sf_root_slice_id, fence_idx
FROM _cuj_fences!(_android_jank_cuj_sf_root_slice, '*GPU completion fence*');

CREATE PERFETTO TABLE _android_jank_cuj_sf_gpu_completion_slice AS
SELECT f.cuj_id, f.vsync, s.*, s.ts + s.dur AS ts_end, f.fence_idx
FROM _android_jank_cuj_sf_gpu_completion_fence AS f
JOIN slice AS r ON r.id = f.sf_root_slice_id
JOIN _android_sf_main_thread AS m ON m.track_id = r.track_id
JOIN _android_jank_cuj_sf_gpu_completion_thread AS k ON k.upid = m.upid
JOIN _cuj_fence_waits!(_android_jank_cuj_sf_gpu_completion_thread, 'waiting for GPU completion *') AS w
  ON w.track_id = k.track_id AND w.fence_idx = f.fence_idx
JOIN slice AS s ON s.id = w.id;

-- Drawing by the compositor itself: only where it lies in a "composeSurfaces" of the main thread.
CREATE PERFETTO TABLE _android_jank_cuj_sf_draw_layers_slice AS
SELECT r.cuj_id, e.utid, r.vsync, s.*, s.ts + s.dur AS ts_end, d.ts AS ts_compose_surfaces
FROM _android_jank_cuj_sf_root_slice AS r
JOIN descendant_slice(r.id) AS d
JOIN _android_sf_main_thread AS m ON m.track_id = d.track_id
JOIN _android_jank_cuj_sf_render_engine_thread AS e ON e.upid = m.upid
JOIN slice AS s ON s.track_id = e.track_id AND s.ts >= d.ts AND s.ts <= d.ts + d.dur
WHERE
  d.name = 'composeSurfaces'
  AND s.name = 'REThreaded::drawLayers'
  AND s.dur > 0
  AND s.ts + s.dur <= d.ts + d.dur;
