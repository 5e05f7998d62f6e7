-- What is deepest on a track at each moment.

INCLUDE PERFETTO MODULE slices.pieces;
INCLUDE PERFETTO MODULE slices.with_context;

-- The pieces of each slice of threads in which no slice inside it is open, with the outermost slice around (root_id). Slices
-- that did not end are left out, with all inside of the outermost ones among them.
CREATE PERFETTO TABLE _slice_flattened AS
WITH
  _sf_rooted AS (
    SELECT id, ts, dur, track_id, depth, parent_id, max(iif(parent_id IS NULL, id, NULL)) OVER (PARTITION BY track_id ORDER BY id) AS root_id
    FROM slice
  ),
  _sf_finished AS (
    SELECT r.*
    FROM _sf_rooted AS r
    JOIN slice AS s ON s.id = r.root_id
    WHERE r.dur > 0 AND s.dur > 0
  )
SELECT
  p.slice_id,
  p.ts,
  p.dur,
  s.depth,
  s.name,
  r.root_id,
  p.track_id,
  s.utid,
  s.tid,
  s.thread_name,
  s.upid,
  s.pid,
  s.process_name
FROM _slice_pieces!(_sf_finished) AS p
JOIN _sf_rooted AS r ON r.id = p.slice_id
JOIN thread_slice AS s ON s.id = p.slice_id
ORDER BY p.ts;
