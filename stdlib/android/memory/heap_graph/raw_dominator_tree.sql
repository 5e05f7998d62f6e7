-- Which object of a Java heap all ways to another lead through.

INCLUDE PERFETTO MODULE android.memory.heap_graph.excluded_refs;
INCLUDE PERFETTO MODULE graphs.dominator_tree;

-- The node above all roots: a number no object has.
CREATE PERFETTO FUNCTION _heap_graph_super_root_fn()
RETURNS LONG AS
SELECT max(id) + 1 FROM heap_graph_object;

-- Reachable objects: (id, idom_id). Nothing but the super root dominates an object whose idom_id is NULL.
CREATE PERFETTO TABLE _raw_heap_graph_dominator_tree AS
SELECT
  node_id AS id,
  iif(dominator_node_id = _heap_graph_super_root_fn(), NULL, dominator_node_id) AS idom_id
FROM graph_dominator_tree!((
  SELECT _heap_graph_super_root_fn() AS source_node_id, id AS dest_node_id
  FROM heap_graph_object
  WHERE root_type IS NOT NULL
  UNION ALL
  SELECT r.owner_id, r.owned_id
  FROM heap_graph_reference AS r
  WHERE r.owned_id IS NOT NULL AND r.id NOT IN (SELECT id FROM _excluded_refs)
), coalesce(_heap_graph_super_root_fn(), 0))
WHERE dominator_node_id IS NOT NULL
ORDER BY 1;
