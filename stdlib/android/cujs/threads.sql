-- Threads that work for critical user journeys.

INCLUDE PERFETTO MODULE android.cujs.base;
INCLUDE PERFETTO MODULE android.surfaceflinger;

-- The threads of a name in the processes of the journeys.
CREATE PERFETTO FUNCTION android_jank_cuj_app_thread(
  -- The name.
  thread_name STRING
)
RETURNS TABLE(
  -- The journey.
  cuj_id LONG,
  -- Its process.
  upid JOINID(process.id),
  -- The thread.
  utid LONG,
  -- Its name.
  name STRING,
  -- The track of its slices.
  track_id LONG
) AS
SELECT c.cuj_id, c.upid, t.utid, t.name, k.id AS track_id
FROM android_jank_cuj AS c
JOIN thread AS t ON t.upid = c.upid AND t.name = $thread_name
JOIN thread_track AS k ON k.utid = t.utid;

-- The threads that draw.
CREATE PERFETTO TABLE android_jank_cuj_render_thread(
  -- The journey.
  cuj_id LONG,
  -- Its process.
  upid JOINID(process.id),
  -- The thread.
  utid JOINID(thread.id),
  -- Its name.
  name STRING,
  -- The track of its slices.
  track_id JOINID(track.id)
) AS
SELECT * FROM android_jank_cuj_app_thread('RenderThread');

-- The threads whose frames count.
CREATE PERFETTO TABLE _android_jank_cuj_main_thread AS
SELECT c.cuj_id, c.upid, t.utid, t.name, k.id AS track_id
FROM android_jank_cuj AS c
JOIN thread AS t ON t.upid = c.upid AND iif(c.ui_thread IS NULL, t.is_main_thread, t.utid = c.ui_thread)
JOIN thread_track AS k ON k.utid = t.utid;

-- The threads that wait for the GPU and for the display.
CREATE PERFETTO TABLE _android_jank_cuj_gpu_completion_thread AS
SELECT * FROM android_jank_cuj_app_thread('GPU completion');

CREATE PERFETTO TABLE _android_jank_cuj_hwc_release_thread AS
SELECT * FROM android_jank_cuj_app_thread('HWC release');

-- The compositor and its threads.
CREATE PERFETTO TABLE _android_jank_cuj_sf_process AS
SELECT upid, pid, name FROM _android_sf_process;

CREATE PERFETTO TABLE _android_jank_cuj_sf_gpu_completion_thread AS
SELECT * FROM _android_sf_thread('GPU completion');

CREATE PERFETTO TABLE _android_jank_cuj_sf_render_engine_thread AS
SELECT * FROM _android_sf_thread('RenderEngine');
