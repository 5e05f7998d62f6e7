-- Searches in directed graphs. A graph is a table of edges: source_node_id, dest_node_id.

-- Everything that can be reached from the start nodes, in depth-first order: (node_id, parent_node_id). A start node has
-- no parent; each node appears once.
CREATE PERFETTO MACRO graph_reachable_dfs(
  -- Edges: source_node_id, dest_node_id.
  graph_table TableOrSubquery,
  -- Where to begin: node_id.
  start_nodes TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT c0 AS node_id, c1 AS parent_node_id
  FROM __intrinsic_table_ptr(
    __intrinsic_dfs(
      (SELECT __intrinsic_graph_agg(g.source_node_id, g.dest_node_id) FROM $graph_table AS g),
      (SELECT __intrinsic_array_agg(s.node_id) FROM $start_nodes AS s)
    )
  )
  WHERE __intrinsic_table_ptr_bind(c0, 'node_id') AND __intrinsic_table_ptr_bind(c1, 'parent_node_id')
);

-- The same in breadth-first order.
CREATE PERFETTO MACRO graph_reachable_bfs(
  -- Edges: source_node_id, dest_node_id.
  graph_table TableOrSubquery,
  -- Where to begin: node_id.
  start_nodes TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT c0 AS node_id, c1 AS parent_node_id
  FROM __intrinsic_table_ptr(
    __intrinsic_bfs(
      (SELECT __intrinsic_graph_agg(g.source_node_id, g.dest_node_id) FROM $graph_table AS g),
      (SELECT __intrinsic_array_agg(s.node_id) FROM $start_nodes AS s)
    )
  )
  WHERE __intrinsic_table_ptr_bind(c0, 'node_id') AND __intrinsic_table_ptr_bind(c1, 'parent_node_id')
);

-- For each node of a tree the next one below the same parent: (node_id, next_node_id).
CREATE PERFETTO MACRO graph_next_sibling(
  -- Nodes: node_id, node_parent_id, sort_key.
  graph_table TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT node_id, lead(node_id) OVER (PARTITION BY node_parent_id ORDER BY sort_key) AS next_node_id
  FROM $graph_table
);

-- A depth-first search from each root that ends by weight: (root_node_id, node_id, parent_node_id). The weights of the edges
-- taken are added up: the search ends with the node that brings them above a floor, or before the one that would bring them
-- above a ceiling.
CREATE PERFETTO MACRO graph_reachable_weight_bounded_dfs(
  -- Edges: source_node_id, dest_node_id, edge_weight.
  graph_table TableOrSubquery,
  -- Roots: root_node_id, root_target_weight.
  root_table TableOrSubquery,
  -- 1: the target is a floor; 0: a ceiling.
  is_target_weight_floor Expr
)
RETURNS TableOrSubquery AS
(
  SELECT root_node_id, node_id, parent_node_id
  FROM __intrinsic_dfs_weight_bounded(
    (SELECT __intrinsic_array_agg(g.source_node_id) FROM $graph_table AS g),
    (SELECT __intrinsic_array_agg(g.dest_node_id) FROM $graph_table AS g),
    (SELECT __intrinsic_array_agg(g.edge_weight) FROM $graph_table AS g),
    (SELECT __intrinsic_array_agg(r.root_node_id) FROM $root_table AS r),
    (SELECT __intrinsic_array_agg(r.root_target_weight) FROM $root_table AS r),
    $is_target_weight_floor
  )
);
