-- What is deepest on a track at each moment.

INCLUDE PERFETTO MODULE slices.outermost;
INCLUDE PERFETTO MODULE slices.pieces;

-- The pieces of each slice of threads in which no slice inside it is open, with the outermost slice around (root_id). Slices
-- that did not end are left out, with all inside of the outermost ones among them.
CREATE PERFETTO TABLE _slice_flattened AS
SELECT
  p.slice_id,
  p.ts,
  p.dur,
  r.depth,
  s.name,
  r.root_id,
  p.track_id,
  utid,
  thread.tid,
  thread.name AS thread_name,
  upid,
  process.pid,
  process.name AS process_name
FROM _slice_pieces!(_slice_that_ended) AS p
JOIN _slice_with_outermost AS r ON r.id = p.slice_id
JOIN slice AS s ON s.id = p.slice_id
JOIN thread_track AS t ON t.id = p.track_id
JOIN thread USING (utid)
LEFT JOIN process USING (upid)
ORDER BY p.ts;
