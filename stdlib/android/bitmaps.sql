-- Pictures that applications keep in memory, by the counters of the view system.

INCLUDE PERFETTO MODULE counters.intervals;
INCLUDE PERFETTO MODULE intervals.intersect;

-- The spans of a counter of processes.
CREATE PERFETTO MACRO _android_bitmap_counter_macro(
  -- Its name.
  name Expr
)
RETURNS TableOrSubquery AS
(
  SELECT i.id, t.upid, i.ts, i.dur, i.track_id, i.value
  FROM counter_leading_intervals!((
    SELECT c.id, c.ts, c.track_id, c.value
    FROM counter AS c
    JOIN process_counter_track AS t ON t.id = c.track_id
    WHERE t.name = $name
  )) AS i
  JOIN process_counter_track AS t ON t.id = i.track_id
  ORDER BY i.id
);

-- Bytes of all of them.
CREATE PERFETTO TABLE android_bitmap_memory(
  -- Row of counter.
  id ID(counter.id),
  -- Row of process.
  upid JOINID(process.upid),
  -- When the value began.
  ts TIMESTAMP,
  -- Duration of the value in nanoseconds.
  dur DURATION,
  -- Row of track.
  track_id JOINID(counter.track_id),
  -- Bytes of bitmaps.
  value LONG
) AS
SELECT * FROM _android_bitmap_counter_macro!('Bitmap Memory');

-- How many there are.
CREATE PERFETTO TABLE android_bitmap_count(
  -- Row of counter.
  id ID(counter.id),
  -- Row of process.
  upid JOINID(process.upid),
  -- When the value began.
  ts TIMESTAMP,
  -- Duration of the value in nanoseconds.
  dur DURATION,
  -- Row of track.
  track_id JOINID(counter.track_id),
  -- How many bitmaps.
  value LONG
) AS
SELECT * FROM _android_bitmap_counter_macro!('Bitmap Count');

-- Both, for the spans in which neither changes.
CREATE PERFETTO TABLE android_bitmap_counters_per_process(
  -- Row of process.
  upid JOINID(process.upid),
  -- Name of the process.
  process_name STRING,
  -- When the pair of values began.
  ts TIMESTAMP,
  -- Duration of the pair of values in nanoseconds.
  dur DURATION,
  -- Bytes of bitmaps.
  bitmap_memory LONG,
  -- How many bitmaps.
  bitmap_count LONG,
  -- Sample of the bytes: row of counter.
  bitmap_memory_id JOINID(counter.id),
  -- Sample of the count: row of counter.
  bitmap_count_id JOINID(counter.id)
) AS
SELECT
  i.upid,
  p.name AS process_name,
  i.ts,
  i.dur,
  m.value AS bitmap_memory,
  c.value AS bitmap_count,
  m.id AS bitmap_memory_id,
  c.id AS bitmap_count_id
FROM _interval_intersect!((
  (SELECT id, ts, dur, upid FROM android_bitmap_memory),
  (SELECT id, ts, dur, upid FROM android_bitmap_count)
), (upid)) AS i
JOIN android_bitmap_memory AS m ON m.id = i.id_0
JOIN android_bitmap_count AS c ON c.id = i.id_1
JOIN process AS p USING (upid);
