-- Slices as a table on screen shows them.

INCLUDE PERFETTO MODULE graphs.scan;
INCLUDE PERFETTO MODULE slices.with_context;

CREATE PERFETTO VIEW _viz_slices_for_ui_table AS
SELECT
  s.id,
  s.ts,
  s.dur,
  s.category,
  s.name,
  s.track_id,
  t.name AS track_name,
  x.thread_name,
  x.utid,
  x.tid,
  x.process_name,
  x.upid,
  x.pid,
  s.depth,
  s.parent_id,
  s.arg_set_id
FROM slice AS s
JOIN track AS t ON t.id = s.track_id
LEFT JOIN thread_or_process_slice AS x USING (id);

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
