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

-- What stands on each slice and below, added up: (id, self_dur, self_count, parent_id, cumulative …).
CREATE PERFETTO MACRO _viz_slice_ancestor_agg(
  -- Slices to count: id, self_dur, self_count.
  inits TableOrSubquery,
  -- All slices: id, parent_id, name.
  nodes TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH RECURSIVE
    _vsa_reached(id) AS (
      SELECT id FROM $inits
      UNION
      SELECT n.parent_id FROM _vsa_reached AS r JOIN $nodes AS n USING (id) WHERE n.parent_id IS NOT NULL
    )
  SELECT n.id, n.parent_id, n.name, coalesce(i.self_dur, 0) AS self_dur, coalesce(i.self_count, 0) AS self_count
  FROM _vsa_reached AS r
  JOIN $nodes AS n USING (id)
  LEFT JOIN $inits AS i USING (id)
);
