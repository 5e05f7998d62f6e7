-- Pictures in Java heaps.

-- The number of the process in the name of a bitmap (pid * 10^7 + kind of storage * 10^6 + count).
CREATE PERFETTO FUNCTION _bitmap_pid(
  bitmap_id LONG
)
RETURNS LONG AS
SELECT $bitmap_id / 10000000;

-- Names of the kinds of storage; NULL for others.
CREATE PERFETTO FUNCTION _android_bitmap_storage_type_name(
  -- The kind.
  storage_type LONG
)
RETURNS STRING AS
SELECT
  CASE $storage_type
    WHEN 0 THEN 'wrapped_pixel_ref'
    WHEN 1 THEN 'heap'
    WHEN 2 THEN 'ashmem'
    WHEN 3 THEN 'hardware'
  END;

-- The process that had a number at a moment: the last one that did, of all machines.
CREATE PERFETTO FUNCTION _android_bitmap_resolve_sender_upid(
  -- The number.
  pid LONG,
  -- The moment.
  at_ts TIMESTAMP
)
RETURNS LONG AS
SELECT max(upid)
FROM process
WHERE pid = $pid AND coalesce(start_ts, $at_ts) <= $at_ts AND coalesce(end_ts, $at_ts) >= $at_ts;

-- Where its pixels lie, from the same.
CREATE PERFETTO FUNCTION _bitmap_storage(
  bitmap_id LONG
)
RETURNS STRING AS
SELECT _android_bitmap_storage_type_name($bitmap_id / 1000000 % 10);

-- A field of an object, when the dump has values.
CREATE PERFETTO FUNCTION _bitmap_field(
  object_data_id LONG,
  field STRING
)
RETURNS LONG AS
SELECT coalesce(p.int_value, p.long_value)
FROM heap_graph_object_data AS d
JOIN heap_graph_primitive AS p USING (field_set_id)
WHERE d.id = $object_data_id AND (p.field_name = $field OR p.field_name GLOB '*.' || $field)
LIMIT 1;

-- Instances of android.graphics.Bitmap. Their fields are there only if the dump holds values.
CREATE PERFETTO TABLE heap_graph_bitmaps(
  -- Row of heap_graph_object.
  object_id JOINID(heap_graph_object.id),
  -- Row of process.
  upid JOINID(process.upid),
  -- When the heap was dumped.
  graph_sample_ts TIMESTAMP,
  -- Width in pixels.
  width LONG,
  -- Height in pixels.
  height LONG,
  -- Density that it is drawn for, in dots per inch.
  density LONG,
  -- Number of the bitmap.
  bitmap_id LONG,
  -- The process that made it, by that number.
  bitmap_pid LONG,
  -- Where its pixels lie, by that number.
  bitmap_storage_type STRING,
  -- Number of the bitmap that it was copied from; NULL: none.
  source_id LONG,
  -- The process of that one.
  source_pid LONG,
  -- Where the pixels of that one lie.
  source_storage_type STRING,
  -- The process of that one: row of process.
  source_upid JOINID(process.upid),
  -- Name of that process.
  source_process_name STRING,
  -- Bytes of its own.
  self_size LONG,
  -- Bytes outside the Java heap.
  native_size LONG,
  -- Was it reachable from a root?
  reachable BOOL
) AS
WITH
  bitmaps AS (
    SELECT
      o.*,
      _bitmap_field(o.object_data_id, 'mWidth') AS width,
      _bitmap_field(o.object_data_id, 'mHeight') AS height,
      _bitmap_field(o.object_data_id, 'mDensity') AS density,
      _bitmap_field(o.object_data_id, 'mId') AS bitmap_id,
      -- -1: it came from no other process
      nullif(_bitmap_field(o.object_data_id, 'mSourceId'), -1) AS source_id
    FROM heap_graph_object AS o
    JOIN heap_graph_class AS c ON c.id = o.type_id
    WHERE 'android.graphics.Bitmap' IN (c.name, c.deobfuscated_name)
  ),
  sources AS (
    SELECT
      b.*,
      (
        SELECT p.upid
        FROM process AS p
        WHERE p.machine_id = (SELECT o.machine_id FROM process AS o WHERE o.upid = b.upid) AND p.pid = _bitmap_pid(b.source_id)
          AND coalesce(p.start_ts, b.graph_sample_ts) <= b.graph_sample_ts
          AND coalesce(p.end_ts, b.graph_sample_ts) >= b.graph_sample_ts
        ORDER BY p.upid DESC
        LIMIT 1
      ) AS source_upid
    FROM bitmaps AS b
  )
SELECT
  s.id AS object_id,
  s.upid,
  s.graph_sample_ts,
  s.width,
  s.height,
  s.density,
  s.bitmap_id,
  _bitmap_pid(s.bitmap_id) AS bitmap_pid,
  _bitmap_storage(s.bitmap_id) AS bitmap_storage_type,
  s.source_id,
  _bitmap_pid(s.source_id) AS source_pid,
  _bitmap_storage(s.source_id) AS source_storage_type,
  s.source_upid,
  p.name AS source_process_name,
  s.self_size,
  s.native_size,
  s.reachable
FROM sources AS s
LEFT JOIN process AS p ON p.upid = s.source_upid;
