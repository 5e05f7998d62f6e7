-- Java heaps by the shortest ways from their roots.

INCLUDE PERFETTO MODULE android.memory.heap_graph.class_tree;
INCLUDE PERFETTO MODULE android.memory.heap_graph.excluded_refs;
INCLUDE PERFETTO MODULE graphs.search;

CREATE PERFETTO TABLE _heap_graph_class_tree AS
SELECT *
FROM _heap_graph_class_tree_of!((
  SELECT node_id AS id, parent_node_id AS parent_id
  FROM graph_reachable_bfs!(
    (
      SELECT owner_id AS source_node_id, owned_id AS dest_node_id
      FROM heap_graph_reference
      WHERE owned_id IS NOT NULL AND id NOT IN (SELECT id FROM _excluded_refs)
    ),
    (SELECT id AS node_id FROM heap_graph_object WHERE root_type IS NOT NULL)
  )
))
ORDER BY id;

-- The classes on those ways, with what hangs below each.
CREATE PERFETTO TABLE android_heap_graph_class_summary_tree(
  graph_sample_ts TIMESTAMP,
  upid JOINID(process.id),
  id LONG,
  parent_id LONG,
  name STRING,
  root_type STRING,
  self_count LONG,
  self_size LONG,
  cumulative_count LONG,
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
  c.cumulative_count,
  c.cumulative_size
FROM _heap_graph_class_tree AS t
JOIN _heap_graph_class_tree_cumulative!(_heap_graph_class_tree) AS c USING (id)
ORDER BY t.id;
