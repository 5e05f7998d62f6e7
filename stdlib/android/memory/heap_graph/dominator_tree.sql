-- What would be freed with each object of a Java heap.

INCLUDE PERFETTO MODULE android.memory.heap_graph.raw_dominator_tree;
INCLUDE PERFETTO MODULE graphs.scan;

-- Reachable objects with all that they alone keep alive.
CREATE PERFETTO TABLE heap_graph_dominator_tree(
  -- Row of heap_graph_object.
  id LONG,
  -- The object that all ways from the roots to it lead over; NULL: none.
  idom_id LONG,
  -- Objects that would go with it, itself among them.
  dominated_obj_count LONG,
  -- Bytes of those.
  dominated_size_bytes LONG,
  -- Bytes outside the heap of those.
  dominated_native_size_bytes LONG,
  -- Its level below the roots of the tree.
  depth LONG
) AS
SELECT
  c0 AS id,
  c1 AS idom_id,
  c2 AS dominated_obj_count,
  c3 AS dominated_size_bytes,
  c4 AS dominated_native_size_bytes,
  c5 AS depth
FROM __intrinsic_table_ptr(
  (
    SELECT __intrinsic_tree_dominator_summary(
      __intrinsic_tree_from_table(
        'id', t.id, 'parent_id', t.idom_id, 'self_size', o.self_size, 'native_size', o.native_size, 'self_count', 1
      )
    )
    FROM _raw_heap_graph_dominator_tree AS t
    JOIN heap_graph_object AS o USING (id)
  )
)
WHERE
  __intrinsic_table_ptr_bind(c0, 'id')
  AND __intrinsic_table_ptr_bind(c1, 'idom_id')
  AND __intrinsic_table_ptr_bind(c2, 'dominated_obj_count')
  AND __intrinsic_table_ptr_bind(c3, 'dominated_size_bytes')
  AND __intrinsic_table_ptr_bind(c4, 'dominated_native_size_bytes')
  AND __intrinsic_table_ptr_bind(c5, 'depth')
ORDER BY c0;
