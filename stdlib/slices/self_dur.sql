-- What a slice takes itself, without the slices inside it.

CREATE PERFETTO TABLE _slice_children_dur AS
SELECT parent_id AS id, sum(iif(dur = -1, trace_end() - ts, dur)) AS children_dur
FROM slice
WHERE parent_id IS NOT NULL
GROUP BY parent_id;

-- Length of each slice minus that of the slices right below it.
CREATE PERFETTO TABLE slice_self_dur(
  -- Row of slice.
  id ID(slice.id),
  -- What is left to itself.
  self_dur DURATION
) AS
SELECT s.id, iif(s.dur = -1, trace_end() - s.ts, s.dur) - coalesce(c.children_dur, 0) AS self_dur
FROM slice AS s
LEFT JOIN _slice_children_dur AS c USING (id);
