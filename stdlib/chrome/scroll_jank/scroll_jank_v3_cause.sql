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
