-- What is deepest on a track at each moment.

INCLUDE PERFETTO MODULE slices.pieces;

-- Each slice with the outermost one around it: (id, ts, dur, track_id, depth, parent_id, root_id).
CREATE PERFETTO TABLE _slice_with_root AS
SELECT
  id, ts, dur, track_id, depth, parent_id,
  max(iif(parent_id IS NULL, id, NULL)) OVER (PARTITION BY track_id ORDER BY id) AS root_id
FROM slice
ORDER BY id;

-- Those that ended, inside of one that did: (id, ts, dur, track_id, depth, parent_id).
CREATE PERFETTO TABLE _finished_slice AS
SELECT r.id, r.ts, r.dur, r.track_id, r.depth, r.parent_id
FROM _slice_with_root AS r
JOIN slice AS s ON s.id = r.root_id
WHERE r.dur > 0 AND s.dur > 0;

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
FROM _slice_pieces!(_finished_slice) AS p
JOIN _slice_with_root AS r ON r.id = p.slice_id
JOIN slice AS s ON s.id = p.slice_id
JOIN thread_track AS t ON t.id = p.track_id
JOIN thread USING (utid)
LEFT JOIN process USING (upid)
ORDER BY p.ts;
