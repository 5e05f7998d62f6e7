-- The camera of Pixel phones.

INCLUDE PERFETTO MODULE counters.global_tracks;
INCLUDE PERFETTO MODULE linux.memory.process;
INCLUDE PERFETTO MODULE slices.with_context;

-- Work of the camera's graph that ended: "cam1_filter:port (frame 17)", by node, port and frame.
CREATE PERFETTO TABLE pixel_camera_frames(
  -- Row of slice.
  id ID(slice.id),
  -- When the work began.
  ts TIMESTAMP,
  -- Duration of the work in nanoseconds.
  dur DURATION,
  -- Row of track.
  track_id JOINID(track.id),
  -- Row of thread.
  utid JOINID(thread.id),
  -- Name of the thread.
  thread_name STRING,
  -- Node of the camera's graph.
  node STRING,
  -- Port of the node.
  port_group STRING,
  -- Number of the camera's frame.
  frame_number LONG,
  -- Number of the camera.
  cam_id LONG
) AS
SELECT
  id,
  ts,
  dur,
  track_id,
  utid,
  thread_name,
  substr(str_split(name, ':', 0), length('cam1_') + 1) AS node,
  str_split(str_split(name, ':', 1), ' (', 0) AS port_group,
  cast_int!(str_split(str_split(name, '(frame', 1), ')', 0)) AS frame_number,
  cast_int!(str_split(str_split(name, 'cam', 1), '_', 0)) AS cam_id
FROM thread_slice
WHERE name GLOB 'cam*_*:* (frame *)' AND dur != -1;

-- Memory of each process without what is swapped out: (upid, ts, dur, rss).
CREATE PERFETTO VIEW _camera_rss AS
SELECT upid, ts, dur, coalesce(file_rss, 0) + coalesce(anon_rss, 0) + coalesce(shmem_rss, 0) AS rss
FROM memory_rss_and_swap_per_process;

-- Memory of the camera's application, of its processes the largest one …
CREATE PERFETTO VIEW _rss_gca AS
SELECT ts, dur, rss AS gca_rss_val
FROM _camera_rss
WHERE upid = (
  SELECT m.upid
  FROM _camera_rss AS m
  JOIN process AS p USING (upid)
  WHERE p.name GLOB '*GoogleCamera' OR p.name GLOB '*googlecamera.fishfood' OR p.name GLOB '*GoogleCameraEng'
  ORDER BY m.rss DESC, m.upid
  LIMIT 1
);

-- … of the hardware's server, of several the one that was started last …
CREATE PERFETTO VIEW _rss_camera_hal AS
SELECT ts, dur, rss AS hal_rss_val
FROM _camera_rss
WHERE upid = (SELECT upid FROM process WHERE name GLOB '*camera.provider*' ORDER BY start_ts DESC, upid DESC LIMIT 1);

-- … of the system's server …
CREATE PERFETTO VIEW _rss_cameraserver AS
SELECT ts, dur, rss AS cameraserver_rss_val
FROM _camera_rss
WHERE upid = (SELECT upid FROM process WHERE name GLOB '*cameraserver' ORDER BY start_ts DESC, upid DESC LIMIT 1);

-- … and of buffers shared with the hardware.
CREATE PERFETTO VIEW _dma_span AS
SELECT c.ts, lead(c.ts, 1, trace_end()) OVER (PARTITION BY c.track_id ORDER BY c.ts) - c.ts AS dur, c.value AS dma_val
FROM counter AS c
JOIN counter_track AS t ON t.id = c.track_id
WHERE t.name = 'mem.dma_heap' AND _counter_track_is_only_name_dimension(t.id);

CREATE VIRTUAL TABLE _rss_gca_hal USING SPAN_OUTER_JOIN(_rss_gca, _rss_camera_hal);

CREATE VIRTUAL TABLE _rss_all_camera USING SPAN_OUTER_JOIN(_rss_gca_hal, _rss_cameraserver);

CREATE VIRTUAL TABLE _rss_and_dma_all_camera_join USING SPAN_OUTER_JOIN(_dma_span, _rss_all_camera);

-- Memory of the three processes and of shared buffers, for the spans in which none changes; 0 for what is not known.
CREATE PERFETTO TABLE pixel_camera_memory_span(
  -- When the set of values began.
  ts TIMESTAMP,
  -- Duration of the set of values in nanoseconds.
  dur DURATION,
  -- The camera's application, bytes.
  gca_rss LONG,
  -- The hardware's server, bytes.
  hal_rss LONG,
  -- The system's camera server, bytes.
  cameraserver_rss LONG,
  -- Buffers shared with the hardware, bytes.
  dma LONG,
  -- All together, bytes.
  rss_and_dma LONG
) AS
SELECT
  ts,
  dur,
  cast_int!(coalesce(gca_rss_val, 0)) AS gca_rss,
  cast_int!(coalesce(hal_rss_val, 0)) AS hal_rss,
  cast_int!(coalesce(cameraserver_rss_val, 0)) AS cameraserver_rss,
  cast_int!(coalesce(dma_val, 0)) AS dma,
  cast_int!(
    coalesce(gca_rss_val, 0) + coalesce(hal_rss_val, 0) + coalesce(cameraserver_rss_val, 0) + coalesce(dma_val, 0)
  ) AS rss_and_dma
FROM _rss_and_dma_all_camera_join;
