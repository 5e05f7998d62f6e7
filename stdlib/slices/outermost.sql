-- Slices with the outermost ones around them.

-- Each slice: (id, ts, dur, track_id, depth, parent_id, root_id).
CREATE PERFETTO TABLE _slice_with_outermost AS
SELECT
  id, ts, dur, track_id, depth, parent_id,
  max(iif(parent_id IS NULL, id, NULL)) OVER (PARTITION BY track_id ORDER BY id) AS root_id
FROM slice
ORDER BY id;

-- Those that ended, inside of one that did: (id, ts, dur, track_id, depth, parent_id).
CREATE PERFETTO TABLE _slice_that_ended AS
SELECT r.id, r.ts, r.dur, r.track_id, r.depth, r.parent_id
FROM _slice_with_outermost AS r
JOIN slice AS s ON s.id = r.root_id
WHERE r.dur > 0 AND s.dur > 0;
