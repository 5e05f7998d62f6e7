-- The camera of Pixel phones.

INCLUDE PERFETTO MODULE android.memory.dmabuf;
INCLUDE PERFETTO MODULE linux.memory.process;

-- Work of the camera's graph: "cam1_filter:port (frame 17)", by node, port and frame.
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
  s.id,
  s.ts,
  s.dur,
  s.track_id,
  t.utid,
  thread.name AS thread_name,
  regexp_extract(s.name, '^cam[0-9]+_([^:]+):') AS node,
  regexp_extract(s.name, ':([^ ]+) \(frame') AS port_group,
  cast_int!(regexp_extract(s.name, '\(frame ([0-9]+)\)')) AS frame_number,
  cast_int!(regexp_extract(s.name, '^cam([0-9]+)_')) AS cam_id
FROM slice AS s
JOIN thread_track AS t ON t.id = s.track_id
JOIN thread USING (utid)
WHERE s.name GLOB 'cam*_*:* (frame *)';

-- Which of the camera's three processes a process is: its application, the hardware's server, the system's server.
CREATE PERFETTO TABLE _camera_processes AS
SELECT
  upid,
  CASE
    WHEN name GLOB '*GoogleCamera*' THEN 'gca'
    WHEN name GLOB '*camera.provider@*' THEN 'hal'
    ELSE 'cameraserver'
  END AS part
FROM process
WHERE name GLOB '*GoogleCamera*' OR name GLOB '*camera.provider@*' OR name GLOB '*cameraserver';

-- Memory of each of the three …
CREATE PERFETTO VIEW _rss_gca AS
SELECT m.ts, m.dur, m.rss_and_swap AS gca_rss
FROM memory_rss_and_swap_per_process AS m
JOIN _camera_processes AS p USING (upid)
WHERE p.part = 'gca';

CREATE PERFETTO VIEW _rss_camera_hal AS
SELECT m.ts, m.dur, m.rss_and_swap AS hal_rss
FROM memory_rss_and_swap_per_process AS m
JOIN _camera_processes AS p USING (upid)
WHERE p.part = 'hal';

CREATE PERFETTO VIEW _rss_cameraserver AS
SELECT m.ts, m.dur, m.rss_and_swap AS cameraserver_rss
FROM memory_rss_and_swap_per_process AS m
JOIN _camera_processes AS p USING (upid)
WHERE p.part = 'cameraserver';

-- … and of buffers shared with the hardware.
CREATE PERFETTO VIEW _dma_span AS
SELECT ts, lead(ts, 1, trace_end()) OVER (ORDER BY ts) - ts AS dur, dma
FROM (SELECT ts, sum(buf_size) OVER (ORDER BY ts) AS dma FROM android_dmabuf_allocs)
GROUP BY ts;

-- The moments at which one of their sizes changes.
CREATE PERFETTO TABLE _camera_memory_changes AS
SELECT m.ts, p.part, m.rss_and_swap AS value
FROM memory_rss_and_swap_per_process AS m
JOIN _camera_processes AS p USING (upid)
UNION ALL
SELECT ts, 'dma' AS part, sum(buf_size) OVER (ORDER BY ts) AS value
FROM android_dmabuf_allocs;

-- Memory of the three processes and of shared buffers, for the spans in which none changes.
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
WITH
  moments AS (SELECT DISTINCT ts FROM _camera_memory_changes),
  values_at AS (
    SELECT
      m.ts,
      last_non_null(max(iif(c.part = 'gca', c.value, NULL))) OVER upto AS gca_rss,
      last_non_null(max(iif(c.part = 'hal', c.value, NULL))) OVER upto AS hal_rss,
      last_non_null(max(iif(c.part = 'cameraserver', c.value, NULL))) OVER upto AS cameraserver_rss,
      last_non_null(max(iif(c.part = 'dma', c.value, NULL))) OVER upto AS dma
    FROM moments AS m
    JOIN _camera_memory_changes AS c USING (ts)
    GROUP BY m.ts
    WINDOW upto AS (ORDER BY m.ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
  )
SELECT
  ts,
  lead(ts, 1, trace_end()) OVER (ORDER BY ts) - ts AS dur,
  gca_rss,
  hal_rss,
  cameraserver_rss,
  dma,
  gca_rss + hal_rss + cameraserver_rss + dma AS rss_and_dma
FROM values_at
WHERE gca_rss IS NOT NULL AND hal_rss IS NOT NULL AND cameraserver_rss IS NOT NULL AND dma IS NOT NULL;
