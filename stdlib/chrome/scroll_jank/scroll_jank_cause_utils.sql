-- The threads that may have held up an input.

INCLUDE PERFETTO MODULE slices.with_context;

-- Kinds of Chrome's processes, and what they are called in traces of Chrome and of Android.
CREATE PERFETTO TABLE _process_type_to_name AS
WITH
  types(process_type, process_name, process_glob) AS (
    VALUES ('Browser', 'Browser', '*.chrome'), ('GPU', 'Gpu', '*.chrome*:privileged_process*')
  )
SELECT process_type, process_name, process_glob FROM types;

-- Processes of a kind on the machine of an input; the renderer is the one that the input belongs to, and the compositor of
-- Android counts as GPU.
CREATE PERFETTO FUNCTION _processes_by_type_for_event_latency(
  -- 'Browser', 'Renderer' or 'GPU'.
  type STRING,
  -- Name of the thread.
  thread STRING,
  -- The slice of the input.
  event_latency_id JOINID(slice.id)
)
RETURNS TABLE(
  -- The process.
  upid JOINID(process.id)
) AS
WITH
  input AS (
    SELECT s.upid, p.machine_id
    FROM process_slice AS s
    JOIN process AS p USING (upid)
    WHERE s.id = $event_latency_id
  )
SELECT upid FROM input WHERE $type = 'Renderer'
UNION
SELECT p.upid
FROM input AS i
JOIN process AS p USING (machine_id)
WHERE $type = 'GPU' AND $thread = 'surfaceflinger' AND p.name GLOB '*surfaceflinger*'
UNION
SELECT p.upid
FROM input AS i
JOIN _process_type_to_name AS t ON t.process_type = $type
JOIN process AS p ON p.machine_id = i.machine_id AND (p.name = t.process_name OR p.name GLOB t.process_glob)
WHERE NOT ($type = 'GPU' AND $thread = 'surfaceflinger');

-- The threads of a name in those processes, if they did anything while the input was on its way.
CREATE PERFETTO FUNCTION chrome_select_scroll_jank_cause_thread(
  -- The slice of the input.
  event_latency_id LONG,
  -- 'Browser', 'Renderer' or 'GPU'.
  process_type STRING,
  -- Name of the thread.
  thread_name STRING
)
RETURNS TABLE(
  -- The thread.
  utid JOINID(thread.id)
) AS
SELECT DISTINCT t.utid
FROM slice AS e
JOIN _processes_by_type_for_event_latency($process_type, $thread_name, $event_latency_id) AS p
JOIN thread AS t ON t.upid = p.upid AND t.name = $thread_name
JOIN thread_track AS k ON k.utid = t.utid
JOIN slice AS s ON s.track_id = k.id AND s.ts BETWEEN e.ts AND e.ts + e.dur
WHERE e.id = $event_latency_id;

-- What processes of a kind are called in traces of Chrome.
CREATE PERFETTO FUNCTION _get_process_name(
  -- 'Browser' or 'GPU'.
  type STRING
)
RETURNS STRING AS
SELECT process_name FROM _process_type_to_name WHERE process_type = $type;

-- A pattern of what they are called in traces of Android.
CREATE PERFETTO FUNCTION _get_process_glob(
  -- 'Browser' or 'GPU'.
  type STRING
)
RETURNS STRING AS
SELECT process_glob FROM _process_type_to_name WHERE process_type = $type;

-- The processes of a kind, on all machines; renderers belong to an input and are not among them.
CREATE PERFETTO FUNCTION _get_process_id_by_type(
  -- 'Browser' or 'GPU'.
  type STRING
)
RETURNS TABLE(
  upid JOINID(process.id)
) AS
SELECT upid
FROM process
WHERE name = _get_process_name($type) OR name GLOB _get_process_glob($type);

-- Android's compositor; NULL without one.
CREATE PERFETTO FUNCTION _get_process_id_for_surfaceflinger()
RETURNS LONG AS
SELECT min(upid) FROM process WHERE name GLOB '*surfaceflinger*';

-- The renderer that an input belongs to.
CREATE PERFETTO FUNCTION _get_renderer_upid_for_event_latency(
  -- The slice of the input.
  id LONG
)
RETURNS LONG AS
SELECT upid FROM process_slice WHERE id = $id;
