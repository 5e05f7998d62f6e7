-- Call tree of perf samples.

INCLUDE PERFETTO MODULE callstacks.stack_profile;

CREATE PERFETTO TABLE _linux_perf_raw_callstacks AS
SELECT *
FROM _callstacks_for_callsites!((SELECT callsite_id FROM perf_sample WHERE callsite_id IS NOT NULL));

-- Call tree of the samples: how many stand on each node, and on it or below.
CREATE PERFETTO TABLE linux_perf_samples_summary_tree(
  -- Id of the node.
  id LONG,
  -- The node that called it.
  parent_id LONG,
  -- Name of the function.
  name STRING,
  -- File that it lies in.
  mapping_name STRING,
  -- Source file.
  source_file STRING,
  -- Line of the source file.
  line_number LONG,
  -- Samples that stand on the node itself.
  self_count LONG,
  -- Samples on it and below.
  cumulative_count LONG
) AS
SELECT r.id, r.parent_id, r.name, r.mapping_name, r.source_file, r.line_number, r.self_count, a.cumulative_count
FROM _callstacks_self_to_cumulative!((SELECT id, parent_id, self_count FROM _linux_perf_raw_callstacks)) AS a
JOIN _linux_perf_raw_callstacks AS r USING (id)
ORDER BY r.id;
