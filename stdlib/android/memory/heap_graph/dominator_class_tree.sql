-- Java heaps by which class keeps which alive.

INCLUDE PERFETTO MODULE android.memory.heap_graph.class_tree;
INCLUDE PERFETTO MODULE android.memory.heap_graph.raw_dominator_tree;

CREATE PERFETTO TABLE _heap_graph_dominator_class_tree AS
SELECT *
FROM _heap_graph_class_tree_of!((SELECT id, idom_id AS parent_id FROM _raw_heap_graph_dominator_tree))
ORDER BY id;
