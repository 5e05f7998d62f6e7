-- All slices that overlap critical user journeys, by where they ran.

INCLUDE PERFETTO MODULE android.cujs.boundaries;
INCLUDE PERFETTO MODULE android.cujs.threads;

-- Slices of the threads that have a row, where they overlap it: its columns cuj_id, upid and utid, those of the slice, and
-- ts_end. Slices that began before count too: they may be why something began late.
CREATE PERFETTO MACRO _cuj_slices_within(
  -- Spans: cuj_id, utid, ts, ts_end.
  spans TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT b.cuj_id, h.upid, b.utid, s.*, s.ts + s.dur AS ts_end
  FROM $spans AS b
  JOIN thread AS h ON h.utid = b.utid
  JOIN thread_track AS k ON k.utid = b.utid
  JOIN slice AS s ON s.track_id = k.id
  WHERE s.dur > 0 AND s.ts <= b.ts_end AND s.ts + s.dur >= b.ts
);

-- The same for all threads of a process.
CREATE PERFETTO MACRO _cuj_slices_of_process(
  -- Spans: cuj_id, upid, ts, ts_end.
  spans TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT
    w.cuj_id, w.upid, p.name AS process_name, w.utid, t.name AS thread_name, w.id, w.ts, w.dur, w.track_id, w.category,
    w.name, w.depth, w.parent_id, w.arg_set_id, w.thread_ts, w.thread_dur, w.slice_id, w.ts_end
  FROM _cuj_slices_within!((
    SELECT b.cuj_id, h.utid, b.ts, b.ts_end FROM $spans AS b JOIN thread AS h ON h.upid = b.upid
  )) AS w
  JOIN thread AS t ON t.utid = w.utid
  LEFT JOIN process AS p ON p.upid = w.upid
);

-- In the process of the journey.
CREATE PERFETTO TABLE _android_jank_cuj_slice AS
SELECT * FROM _cuj_slices_of_process!(_android_jank_cuj_boundary);

-- On its user interface's thread.
CREATE PERFETTO TABLE _android_jank_cuj_main_thread_slice AS
SELECT * FROM _cuj_slices_within!(_android_jank_cuj_main_thread_cuj_boundary);

-- On the thread that draws.
CREATE PERFETTO TABLE _android_jank_cuj_render_thread_slice AS
SELECT * FROM _cuj_slices_within!(_android_jank_cuj_render_thread_cuj_boundary);

-- In the compositor.
CREATE PERFETTO TABLE _android_jank_cuj_sf_slice AS
SELECT *
FROM _cuj_slices_of_process!((
  SELECT b.cuj_id, h.upid, b.ts, b.ts_end
  FROM _android_jank_cuj_sf_main_thread_cuj_boundary AS b
  JOIN thread AS h USING (utid)
));

-- On its main thread.
CREATE PERFETTO TABLE _android_jank_cuj_sf_main_thread_slice AS
SELECT * FROM _cuj_slices_within!(_android_jank_cuj_sf_main_thread_cuj_boundary);

-- On the thread where it draws, frame by frame.
CREATE PERFETTO TABLE _android_jank_cuj_sf_render_engine_slice AS
SELECT * FROM _cuj_slices_within!(_android_jank_cuj_sf_render_engine_frame_boundary);
