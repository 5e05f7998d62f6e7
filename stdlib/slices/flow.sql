-- Slices that flows lead to.

INCLUDE PERFETTO MODULE graphs.search;

-- The slices that flows lead to from each of the table that a flow begins in, with itself first, and the slice that each was
-- reached from: (root_node_id, node_id, parent_node_id).
CREATE PERFETTO MACRO _slice_following_flow(
  -- Slices: id.
  source_table TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT root_node_id, node_id, parent_node_id
  FROM graph_reachable_weight_bounded_dfs!(
    (SELECT slice_out AS source_node_id, slice_in AS dest_node_id, 0 AS edge_weight FROM flow),
    (
      SELECT f.slice_out AS root_node_id, 1 AS root_target_weight
      FROM flow AS f
      JOIN (SELECT id FROM $source_table) AS s ON s.id = f.slice_out
    ),
    1
  )
);
