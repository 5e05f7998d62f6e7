-- Native memory by call stack, of all processes together.

INCLUDE PERFETTO MODULE android.memory.heap_profile.callstacks;
INCLUDE PERFETTO MODULE graphs.scan;

CREATE PERFETTO TABLE _android_heap_profile_raw_callstacks AS
SELECT *
FROM _android_heap_profile_callstacks_for_allocations!((
  -- freed memory is a negative size: what was asked for is the sum of the positive ones
  SELECT callsite_id, size, count, max(size, 0) AS alloc_size, max(count, 0) AS alloc_count
  FROM heap_profile_allocation
));

-- What each and all that it called asked for: (id, cumulative_size, cumulative_alloc_size).
CREATE PERFETTO TABLE _android_heap_profile_cumulatives AS
SELECT id, cumulative_size, cumulative_alloc_size
FROM _graph_aggregating_scan!(
  (
    SELECT id AS source_node_id, parent_id AS dest_node_id
    FROM _android_heap_profile_raw_callstacks
    WHERE parent_id IS NOT NULL
  ),
  (
    SELECT id, self_size AS cumulative_size, self_alloc_size AS cumulative_alloc_size
    FROM _android_heap_profile_raw_callstacks
  ),
  (cumulative_size, cumulative_alloc_size),
  (
    SELECT id, sum(cumulative_size) AS cumulative_size, sum(cumulative_alloc_size) AS cumulative_alloc_size
    FROM $table
    GROUP BY id
  )
);

-- What each function asked for and did not give back, itself and with all that it called.
CREATE PERFETTO TABLE android_heap_profile_summary_tree(
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
  -- Bytes allocated here and not freed.
  self_size LONG,
  -- The same with all below.
  cumulative_size LONG,
  -- Bytes allocated here, freed or not.
  self_alloc_size LONG,
  -- The same with all below.
  cumulative_alloc_size LONG
) AS
SELECT
  n.id,
  n.parent_id,
  n.name,
  n.mapping_name,
  n.source_file,
  n.line_number,
  n.self_size,
  c.cumulative_size,
  n.self_alloc_size,
  c.cumulative_alloc_size
FROM _android_heap_profile_raw_callstacks AS n
JOIN _android_heap_profile_cumulatives AS c USING (id)
ORDER BY n.id;
