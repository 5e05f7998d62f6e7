-- Frames of applications and the frames of the compositor that showed them.

INCLUDE PERFETTO MODULE slices.with_context;

CREATE PERFETTO TABLE _android_sf_process AS
SELECT upid, pid, name FROM process WHERE name = '/system/bin/surfaceflinger' OR name = 'surfaceflinger';

-- By the flow from one timeline to the other.
CREATE PERFETTO TABLE android_app_to_sf_frame_timeline_match(
  app_upid JOINID(process.id),
  app_vsync LONG,
  sf_upid JOINID(process.id),
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
WHERE s.upid IN (SELECT upid FROM _android_sf_process);

-- What the compositor did in each turn, and how long: slices of its main thread one below the top.
CREATE PERFETTO TABLE android_surfaceflinger_workloads(
  id JOINID(slice.id),
  ts TIMESTAMP,
  dur DURATION,
  name STRING,
  sf_vsync LONG
) AS
SELECT
  s.id,
  s.ts,
  s.dur,
  s.name,
  cast_int!(regexp_extract(t.name, '^(?:commit|composite) ([0-9]+)')) AS sf_vsync
FROM thread_slice AS s
JOIN slice AS t ON t.id = s.parent_id
WHERE s.is_main_thread AND s.upid IN (SELECT upid FROM _android_sf_process)
  AND (t.name GLOB 'commit *' OR t.name GLOB 'composite *');
