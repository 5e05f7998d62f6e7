-- What is deepest on a track at each moment.

INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE slices.pieces;

-- The pieces of each slice in which no slice inside it is open: (id, slice_id, ts, dur, name, depth, track_id, utid …).
CREATE PERFETTO TABLE _slice_flattened AS
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
FROM _slice_pieces!(slice) AS p
JOIN slice AS s ON s.id = p.slice_id
LEFT JOIN thread_track AS t ON t.id = p.track_id
LEFT JOIN thread USING (utid)
LEFT JOIN process USING (upid)
ORDER BY p.ts;
