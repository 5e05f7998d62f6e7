-- Slices that flows lead to.

INCLUDE PERFETTO MODULE graphs.search;

-- The slices that flows lead to from those of the table, with the slice they come from: (root_node_id, node_id,
-- parent_node_id).
CREATE PERFETTO MACRO _slice_following_flow(
  -- Slices: id.
  source_table TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT parent_node_id AS root_node_id, node_id, parent_node_id
  FROM graph_reachable_bfs!(
    (SELECT slice_out AS source_node_id, slice_in AS dest_node_id FROM flow),
    (SELECT id AS node_id FROM $source_table)
  )
);
