-- When the frames of critical user journeys, and the journeys, began and ended on each thread.

INCLUDE PERFETTO MODULE android.cujs.base;
INCLUDE PERFETTO MODULE android.cujs.relevant_slices;
INCLUDE PERFETTO MODULE android.surfaceflinger;

-- Numbers of the first and last frame: as marked, or else those of the turns within the slice.
CREATE PERFETTO TABLE _android_jank_cuj_vsync_boundary AS
SELECT
  c.cuj_id,
  c.upid,
  c.layer_id,
  coalesce(c.begin_vsync, min(f.vsync)) AS vsync_min,
  coalesce(c.end_vsync, max(f.vsync)) AS vsync_max
FROM android_jank_cuj AS c
JOIN _android_jank_cuj_do_frames AS f USING (cuj_id)
GROUP BY c.cuj_id;

-- The frame timeline by number, and both kinds beside each other: (upid, vsync, ts_expected, dur_expected, ts, ts_end).
CREATE PERFETTO TABLE _cuj_frame_timeline AS
SELECT
  a.upid,
  cast_int!(a.name) AS vsync,
  max(e.ts) AS ts_expected,
  max(e.dur) AS dur_expected,
  min(a.ts) AS ts,
  max(a.ts + a.dur) AS ts_end
FROM actual_frame_timeline_slice AS a
LEFT JOIN expected_frame_timeline_slice AS e ON e.upid = a.upid AND e.name = a.name AND e.dur > 0
WHERE a.upid IN (SELECT upid FROM _android_jank_cuj_vsync_boundary UNION SELECT upid FROM _android_sf_process)
GROUP BY a.upid, vsync;

-- Frames on the user interface's thread. A frame begins when it was planned to, or when the one before it ended, if that was
-- later: so frames do not overlap, and time that other work took away from them counts. A timeline that does not fit the
-- turn (1 ms may be missing at its start) is that of another clock or of a frame that was given up: the turn counts alone.
CREATE PERFETTO TABLE _android_jank_cuj_main_thread_frame_boundary AS
WITH
  turns AS (
    SELECT *, lag(ts_end, 1, -1) OVER (PARTITION BY cuj_id ORDER BY vsync) AS ts_prev_do_frame_end
    FROM _android_jank_cuj_do_frames
  ),
  starts AS (
    SELECT
      f.cuj_id,
      f.utid,
      f.vsync,
      f.ts AS ts_do_frame_start,
      f.ts_end,
      f.ts_prev_do_frame_end,
      t.ts_expected,
      coalesce(max(f.ts_prev_do_frame_end, t.ts_expected), f.ts) AS ts
    FROM turns AS f
    LEFT JOIN _cuj_frame_timeline AS t
      ON t.upid = f.upid AND t.vsync = f.vsync AND f.ts >= t.ts - 1000000 AND f.ts <= t.ts_end
  )
SELECT *, ts_end - ts AS dur FROM starts;

-- From the first frame's start to the last one's end: (cuj_id, utid, ts, ts_end, dur).
CREATE PERFETTO MACRO _cuj_hull(
  -- Frames: cuj_id, utid, ts, ts_end.
  frames TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT cuj_id, utid, min(ts) AS ts, max(ts_end) AS ts_end, max(ts_end) - min(ts) AS dur
  FROM $frames
  GROUP BY cuj_id, utid
);

CREATE PERFETTO TABLE _android_jank_cuj_main_thread_cuj_boundary AS
SELECT * FROM _cuj_hull!(_android_jank_cuj_main_thread_frame_boundary);

-- The journey in its process: to when the last frame was shown. A last turn that drew nothing has no such time; then to the
-- later of its end and the slice's.
CREATE PERFETTO TABLE _android_jank_cuj_boundary AS
WITH
  ends AS (
    SELECT
      b.cuj_id,
      c.upid,
      b.ts,
      coalesce(
        t.ts_end,
        (SELECT max(max(f.ts_end), c.ts_end) FROM _android_jank_cuj_do_frames AS f WHERE f.cuj_id = c.cuj_id)
      ) AS ts_end
    FROM _android_jank_cuj_main_thread_cuj_boundary AS b
    JOIN android_jank_cuj AS c USING (cuj_id)
    JOIN _android_jank_cuj_vsync_boundary AS v USING (cuj_id)
    LEFT JOIN _cuj_frame_timeline AS t ON t.upid = c.upid AND t.vsync = v.vsync_max
  )
SELECT cuj_id, upid, ts, ts_end, ts_end - ts AS dur FROM ends;

-- Frames on the thread that draws. It is expected to begin when the user interface hands over ("postAndWait").
CREATE PERFETTO TABLE _android_jank_cuj_render_thread_frame_boundary AS
WITH
  drawings AS (
    SELECT *, lag(ts_end, 1, -1) OVER (PARTITION BY cuj_id ORDER BY vsync, ts) AS ts_prev_draw_frame_end
    FROM _android_jank_cuj_draw_frame_slice
  ),
  handed AS (
    SELECT f.cuj_id, f.vsync, min(d.ts) AS ts_expected
    FROM _android_jank_cuj_do_frames AS f
    JOIN descendant_slice(f.id) AS d
    WHERE d.name = 'postAndWait'
    GROUP BY f.cuj_id, f.vsync
  ),
  frames AS (
    SELECT
      d.cuj_id,
      d.utid,
      d.vsync,
      h.ts_expected,
      min(d.ts) AS ts_draw_frame_start,
      min(d.ts_prev_draw_frame_end) AS ts_prev_draw_frame_end,
      max(d.ts_end) AS ts_end
    FROM drawings AS d
    JOIN handed AS h USING (cuj_id, vsync)
    GROUP BY d.cuj_id, d.utid, d.vsync
  ),
  starts AS (
    SELECT *, min(max(ts_expected, ts_prev_draw_frame_end), ts_draw_frame_start) AS ts FROM frames
  )
SELECT
  cuj_id, utid, vsync, ts_expected, ts_draw_frame_start, ts_prev_draw_frame_end, ts, ts_end, ts_end - ts AS dur
FROM starts;

CREATE PERFETTO TABLE _android_jank_cuj_render_thread_cuj_boundary AS
SELECT * FROM _cuj_hull!(_android_jank_cuj_render_thread_frame_boundary);

-- Numbers of the compositor's first and last frame.
CREATE PERFETTO TABLE _android_jank_cuj_sf_vsync_boundary AS
SELECT cuj_id, min(vsync) AS vsync_min, max(vsync) AS vsync_max
FROM _android_jank_cuj_sf_root_slice
GROUP BY cuj_id;

CREATE PERFETTO TABLE _android_jank_cuj_sf_main_thread_cuj_boundary AS
SELECT * FROM _cuj_hull!(_android_jank_cuj_sf_main_thread_frame_boundary);

-- Frames that the compositor drew itself. It does that for some frames only, so that there is no whole of them.
CREATE PERFETTO TABLE _android_jank_cuj_sf_render_engine_frame_boundary AS
SELECT
  cuj_id, utid, vsync, ts_compose_surfaces AS ts, ts AS ts_draw_layers_start, ts_end, ts_end - ts_compose_surfaces AS dur
FROM _android_jank_cuj_sf_draw_layers_slice;

CREATE PERFETTO TABLE _android_jank_cuj_sf_boundary AS
SELECT cuj_id, ts, ts_end, dur FROM _android_jank_cuj_sf_main_thread_cuj_boundary;
