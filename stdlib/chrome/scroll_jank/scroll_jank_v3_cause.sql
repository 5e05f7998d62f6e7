-- What made an input take longer than the one before.

-- The part (a direct child) of a slice that grew most against the part of the same name of another slice; a part that the
-- other one does not have counts whole.
CREATE PERFETTO FUNCTION chrome_get_v3_jank_cause_id(
  -- The slice that took long.
  janky_slice_id LONG,
  -- The slice to compare with.
  prev_slice_id LONG
)
-- Slice of the part; NULL when there are none.
RETURNS LONG AS
SELECT c.id
FROM slice AS c
LEFT JOIN slice AS p ON p.parent_id = $prev_slice_id AND p.name = c.name
WHERE c.parent_id = $janky_slice_id
ORDER BY c.dur - coalesce(p.dur, 0) DESC, c.id
LIMIT 1;

-- The slices right below another.
CREATE PERFETTO FUNCTION _direct_children_slice(
  -- Row of slice.
  parent_id LONG
)
RETURNS TABLE(
  -- Row of slice.
  id LONG,
  -- When it began.
  ts TIMESTAMP,
  -- Its length.
  dur DURATION,
  -- Its category.
  category LONG,
  -- Its name.
  name STRING,
  -- Its track: row of track.
  track_id LONG,
  -- How many slices lie around it.
  depth LONG,
  -- The slice around it.
  parent_id LONG,
  -- Details: the set of args.
  arg_set_id LONG,
  -- Its start by the clock of the thread.
  thread_ts TIMESTAMP,
  -- Its length by that clock.
  thread_dur LONG
) AS
SELECT id, ts, dur, category, name, track_id, depth, parent_id, arg_set_id, thread_ts, thread_dur
FROM slice
WHERE parent_id = $parent_id;
