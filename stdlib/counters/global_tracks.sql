-- Counter tracks that belong to no CPU, process or thread.

-- True when the track has no dimension but its name.
CREATE PERFETTO FUNCTION _counter_track_is_only_name_dimension(
  -- Row of counter_track.
  track_id LONG
)
RETURNS BOOL AS
SELECT NOT EXISTS (
  SELECT 1
  FROM counter_track AS t
  JOIN args AS a ON a.arg_set_id = t.dimension_arg_set_id
  WHERE t.id = $track_id AND a.key != 'name'
);
