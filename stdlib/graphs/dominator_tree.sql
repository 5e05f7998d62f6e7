-- Dominators: which nodes every path from the root to a node must pass.

-- The dominator of each node that the root reaches: (node_id, dominator_node_id). The root has none.
CREATE PERFETTO MACRO graph_dominator_tree(
  -- Edges: source_node_id, dest_node_id.
  graph_table TableOrSubquery,
  -- The node where all paths begin.
  root_node_id Expr
)
RETURNS TableOrSubquery AS
(
  SELECT c0 AS node_id, c1 AS dominator_node_id
  FROM __intrinsic_table_ptr(
    (
      SELECT __intrinsic_dominator_tree(g.source_node_id, g.dest_node_id, $root_node_id)
      FROM $graph_table AS g
    )
  )
  WHERE __intrinsic_table_ptr_bind(c0, 'node_id') AND __intrinsic_table_ptr_bind(c1, 'dominator_node_id')
);
