-- What is deepest on a track at each moment.

INCLUDE PERFETTO MODULE intervals.intersect;

-- The pieces of each slice in which no slice inside it is open: (id, slice_id, ts, dur, name, depth, track_id, utid …).
CREATE PERFETTO TABLE _slice_flattened AS
WITH
  -- moments at which the deepest slice of a track may change
  changes AS (
    SELECT track_id, ts, id AS slice_id, depth, 0 AS is_end FROM slice WHERE dur != 0
    UNION ALL
    -- behind a child its parent goes on
    SELECT track_id, ts + dur AS ts, parent_id AS slice_id, depth - 1 AS depth, 1 AS is_end FROM slice WHERE dur > 0
  ),
  -- the last word at one moment: starts behind ends, and the deepest of each
  settled AS (
    SELECT
      track_id,
      ts,
      slice_id,
      depth,
      row_number() OVER (
        PARTITION BY track_id, ts
        ORDER BY is_end, iif(is_end, depth, -depth)
      ) AS place
    FROM changes
  ),
  pieces AS (
    SELECT
      track_id,
      ts,
      slice_id,
      lead(ts, 1, trace_end()) OVER (PARTITION BY track_id ORDER BY ts) - ts AS dur
    FROM settled
    WHERE place = 1
  )
SELECT
  p.slice_id,
  p.ts,
  p.dur,
  p.track_id,
  s.name,
  s.depth,
  s.parent_id,
  t.utid,
  thread.name AS thread_name,
  process.upid,
  process.name AS process_name
FROM pieces AS p
JOIN slice AS s ON s.id = p.slice_id
LEFT JOIN thread_track AS t ON t.id = p.track_id
LEFT JOIN thread USING (utid)
LEFT JOIN process USING (upid)
WHERE p.dur > 0
ORDER BY p.ts;
