-- Java heaps by the shortest ways from their roots, with sums.

INCLUDE PERFETTO MODULE android.memory.heap_graph.class_tree;
INCLUDE PERFETTO MODULE android.memory.heap_graph.helpers;

-- What hangs below each place, with itself: (id, cumulative_count, cumulative_size).
CREATE PERFETTO TABLE _heap_graph_class_tree_cumulatives AS
SELECT id, cumulative_count, cumulative_size
FROM _heap_graph_tree_sums!(
  (SELECT id, parent_id, self_count, self_size, 0 AS native_size FROM _heap_graph_class_tree)
);

-- The classes on those ways, with what hangs below each.
CREATE PERFETTO TABLE android_heap_graph_class_summary_tree(
  -- When the heap was dumped.
  graph_sample_ts TIMESTAMP,
  -- The process whose heap it is.
  upid JOINID(process.id),
  -- Number of the node.
  id LONG,
  -- The node above it; NULL at roots.
  parent_id LONG,
  -- The class; "[native] CLASS" for what its objects hold outside of the heap.
  name STRING,
  -- Why a root is one.
  root_type STRING,
  -- How many objects are at this place.
  self_count LONG,
  -- Their size in bytes.
  self_size LONG,
  -- How many objects there are at and below this place.
  cumulative_count LONG,
  -- Their size in bytes.
  cumulative_size LONG
) AS
SELECT
  t.graph_sample_ts,
  t.upid,
  t.id,
  t.parent_id,
  t.name,
  t.root_type,
  t.self_count,
  t.self_size,
  s.cumulative_count,
  s.cumulative_size
FROM _heap_graph_class_tree AS t
JOIN _heap_graph_class_tree_cumulatives AS s USING (id)
ORDER BY t.id;
