-- Slices above and below others.

INCLUDE PERFETTO MODULE graphs.scan;

-- A slice and all above it.
CREATE PERFETTO FUNCTION _slice_ancestor_and_self(
  -- Row of slice.
  slice_id JOINID(slice.id)
)
RETURNS TABLE(
  id JOINID(slice.id),
  ts TIMESTAMP,
  dur DURATION,
  track_id JOINID(track.id),
  category STRING,
  name STRING,
  depth LONG,
  parent_id JOINID(slice.id),
  arg_set_id ARGSETID,
  thread_ts TIMESTAMP,
  thread_dur LONG
) AS
SELECT id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts, thread_dur
FROM slice
WHERE id = $slice_id
UNION ALL
SELECT id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts, thread_dur
FROM ancestor_slice($slice_id);

-- A slice and all inside it.
CREATE PERFETTO FUNCTION _slice_descendant_and_self(
  -- Row of slice.
  slice_id JOINID(slice.id)
)
RETURNS TABLE(
  id JOINID(slice.id),
  ts TIMESTAMP,
  dur DURATION,
  track_id JOINID(track.id),
  category STRING,
  name STRING,
  depth LONG,
  parent_id JOINID(slice.id),
  arg_set_id ARGSETID,
  thread_ts TIMESTAMP,
  thread_dur LONG
) AS
SELECT id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts, thread_dur
FROM slice
WHERE id = $slice_id
UNION ALL
SELECT id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts, thread_dur
FROM descendant_slice($slice_id);

-- A tree of slices without those whose column is NULL: (id, parent_id, depth, the column). A child of one that goes takes the
-- nearest ancestor that stays as its parent, and has its depth; where none stays, the outermost one, and depth 0.
CREATE PERFETTO MACRO _slice_remove_nulls_and_reparent(
  -- Slices: id, parent_id, depth, the column.
  slice_table TableOrSubQuery,
  -- The column.
  column_name ColumnName
)
RETURNS TableOrSubQuery AS
(
  WITH RECURSIVE
    _srn_input AS MATERIALIZED (SELECT id, parent_id, depth, $column_name AS _v FROM $slice_table),
    _srn_walk(id, above, above_depth) AS (
      SELECT id, parent_id, depth FROM _srn_input WHERE parent_id IS NULL OR parent_id NOT IN (SELECT id FROM _srn_input)
      UNION ALL
      -- what lies below dropped ones only names the outermost of them
      SELECT
        c.id,
        iif(p._v IS NULL AND w.above IS NOT NULL, w.above, p.id),
        iif(p._v IS NOT NULL, p.depth, iif(w.above IS NULL, 0, w.above_depth))
      FROM _srn_walk AS w
      JOIN _srn_input AS p ON p.id = w.id
      JOIN _srn_input AS c ON c.parent_id = w.id
    )
  SELECT i.id, w.above AS parent_id, w.above_depth AS depth, i._v AS $column_name
  FROM _srn_walk AS w
  JOIN _srn_input AS i USING (id)
  WHERE i._v IS NOT NULL
);
