-- A tree as one forest for each group of its nodes.

-- Gives each node the nearest ancestor of its own group as parent: (id, parent_id, group_key). Within a group, who stands
-- above whom stays as it was.
CREATE PERFETTO MACRO tree_structural_partition_by_group(
  -- Nodes: id, parent_id, group_key.
  tree_table TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT c0 AS id, c1 AS parent_id, c2 AS group_key
  FROM __intrinsic_table_ptr(
    (SELECT __intrinsic_structural_tree_partition(t.id, t.parent_id, t.group_key) FROM $tree_table AS t)
  )
  WHERE
    __intrinsic_table_ptr_bind(c0, 'node_id')
    AND __intrinsic_table_ptr_bind(c1, 'parent_node_id')
    AND __intrinsic_table_ptr_bind(c2, 'group_key')
);
