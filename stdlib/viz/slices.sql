-- Slices as a table on screen shows them.


-- Those of threads stand first, then those of processes, track by track; the rest as they began.
CREATE PERFETTO VIEW _viz_slices_for_ui_table AS
SELECT
  s.id,
  s.ts,
  s.dur,
  s.category,
  s.name,
  s.track_id,
  t.name AS track_name,
  h.name AS thread_name,
  h.utid,
  h.tid,
  p.name AS process_name,
  h.upid,
  p.pid,
  s.depth,
  s.parent_id,
  s.arg_set_id
FROM thread_track AS t
CROSS JOIN slice AS s ON s.track_id = t.id
JOIN thread AS h USING (utid)
LEFT JOIN process AS p USING (upid)
UNION ALL
SELECT
  s.id, s.ts, s.dur, s.category, s.name, s.track_id, t.name, NULL, NULL, NULL, p.name, t.upid, p.pid, s.depth,
  s.parent_id, s.arg_set_id
FROM process_track AS t
CROSS JOIN slice AS s ON s.track_id = t.id
JOIN process AS p USING (upid)
UNION ALL
SELECT
  s.id, s.ts, s.dur, s.category, s.name, s.track_id, t.name, NULL, NULL, NULL, NULL, NULL, NULL, s.depth,
  s.parent_id, s.arg_set_id
FROM slice AS s
CROSS JOIN track AS t ON t.id = s.track_id
WHERE s.track_id NOT IN (SELECT id FROM thread_track UNION ALL SELECT id FROM process_track);

-- A tree of slices from its leaves up: (id, parentId, name, self_dur, self_count, simple_count). The leaf's own time is
-- its dur; that of a slice above it is its dur without its children's.
CREATE PERFETTO MACRO _viz_slice_ancestor_agg(
  -- The leaves: id, dur.
  inits TableOrSubquery,
  -- All slices: id, parent_id, name, dur.
  nodes TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH RECURSIVE
    _vsa_reached(id) AS (
      SELECT id FROM $inits
      UNION
      SELECT n.parent_id FROM _vsa_reached AS r JOIN $nodes AS n USING (id) WHERE n.parent_id IS NOT NULL
    ),
    _vsa_nodes AS MATERIALIZED (
      SELECT n.id, n.parent_id, n.name, coalesce(i.dur, n.dur) AS dur
      FROM _vsa_reached AS r
      JOIN $nodes AS n USING (id)
      LEFT JOIN $inits AS i USING (id)
    ),
    _vsa_below AS (SELECT parent_id AS id, sum(dur) AS dur FROM _vsa_nodes WHERE parent_id IS NOT NULL GROUP BY parent_id)
  SELECT
    n.id,
    n.parent_id AS parentId,
    n.name,
    n.dur - coalesce(b.dur, 0) AS self_dur,
    1 AS self_count,
    1 AS simple_count
  FROM _vsa_nodes AS n
  LEFT JOIN _vsa_below AS b USING (id)
);
