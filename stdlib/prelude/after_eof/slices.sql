-- How slices lie in each other.

-- Whether a slice lies, at any depth, in another of the same track; no slice lies in itself.
CREATE PERFETTO FUNCTION slice_is_ancestor(
  -- Row of slice: the outer one.
  ancestor_id LONG,
  -- Row of slice: the inner one.
  descendant_id LONG
)
-- True or false; NULL when a slice is not there.
RETURNS BOOL
DELEGATES TO slice_is_ancestor;
