-- Native memory by call stack, of all processes together.

INCLUDE PERFETTO MODULE android.memory.heap_profile.callstacks;
INCLUDE PERFETTO MODULE graphs.scan;

CREATE PERFETTO TABLE _android_heap_profile_raw_callstacks AS
SELECT *
FROM _android_heap_profile_callstacks_for_allocations!((SELECT callsite_id, size FROM heap_profile_allocation));

-- What each function asked for and did not give back, itself and with all that it called.
CREATE PERFETTO TABLE android_heap_profile_summary_tree(
  id LONG,
  parent_id LONG,
  name STRING,
  mapping_name STRING,
  source_file STRING,
  line_number LONG,
  self_size LONG,
  cumulative_size LONG,
  self_alloc_size LONG,
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
JOIN _graph_aggregating_scan!(
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
) AS c USING (id)
ORDER BY n.id;
