-- Call tree of samples from Apple Instruments.

INCLUDE PERFETTO MODULE callstacks.stack_profile;

CREATE PERFETTO TABLE _appleos_instruments_raw_callstacks AS
SELECT *
FROM _callstacks_for_callsites!((SELECT callsite_id FROM instruments_sample WHERE callsite_id IS NOT NULL));

-- How many samples stand on each node, and on it or below.
CREATE PERFETTO TABLE appleos_instruments_samples_summary_tree(
  -- Number of the node.
  id LONG,
  -- The row above it; NULL: none.
  parent_id LONG,
  -- Name of the function.
  name STRING,
  -- The file that the code is of.
  mapping_name STRING,
  -- Source file, where it is known.
  source_file STRING,
  -- Line in it.
  line_number LONG,
  -- Samples here.
  self_count LONG,
  -- Samples here and below.
  cumulative_count LONG
) AS
SELECT r.id, r.parent_id, r.name, r.mapping_name, r.source_file, r.line_number, r.self_count, a.cumulative_count
FROM _callstacks_self_to_cumulative!((SELECT id, parent_id, self_count FROM _appleos_instruments_raw_callstacks)) AS a
JOIN _appleos_instruments_raw_callstacks AS r USING (id)
ORDER BY r.id;
