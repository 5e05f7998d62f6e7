-- Walks in trees.

INCLUDE PERFETTO MODULE graphs.search;

-- The start nodes and all of their ancestors, once each: (id, parent_id).
CREATE PERFETTO MACRO _tree_reachable_ancestors_or_self(
  -- Nodes: id, parent_id.
  tree TableOrSubquery,
  -- Where to begin: id.
  start_nodes TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT d.node_id AS id, t.parent_id
  FROM graph_reachable_dfs!(
    (SELECT id AS source_node_id, parent_id AS dest_node_id FROM $tree WHERE parent_id IS NOT NULL),
    (SELECT id AS node_id FROM $start_nodes)
  ) AS d
  JOIN $tree AS t ON t.id = d.node_id
);
