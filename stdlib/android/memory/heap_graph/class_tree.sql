-- Objects of a Java heap that hang in a tree, folded: objects of one class below the same classes are one node.

INCLUDE PERFETTO MODULE graphs.scan;

-- The name of a class as people write it.
CREATE PERFETTO FUNCTION _heap_graph_class_name(
  class_id LONG
)
RETURNS STRING AS
SELECT coalesce(deobfuscated_name, name) FROM heap_graph_class WHERE id = $class_id;

-- Folds a tree of objects: (id, parent_id, upid, graph_sample_ts, name, root_type, heap_type, self_count, self_size).
CREATE PERFETTO MACRO _heap_graph_class_tree_of(
  -- Objects: id, parent_id (NULL at roots).
  tree TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH RECURSIVE
    _hg_tree AS MATERIALIZED (SELECT id, parent_id FROM $tree),
    _hg_paths(id, path, parent_path) AS (
      SELECT
        t.id,
        hash(o.upid, o.graph_sample_ts, coalesce(o.root_type, ''), coalesce(o.heap_type, ''), o.type_id),
        NULL
      FROM _hg_tree AS t
      JOIN heap_graph_object AS o USING (id)
      WHERE t.parent_id IS NULL
      UNION ALL
      SELECT t.id, hash(p.path, coalesce(o.heap_type, ''), o.type_id), p.path
      FROM _hg_paths AS p
      JOIN _hg_tree AS t ON t.parent_id = p.id
      JOIN heap_graph_object AS o ON o.id = t.id
    ),
    _hg_nodes AS MATERIALIZED (
      SELECT
        row_number() OVER (ORDER BY min(p.id)) - 1 AS id,
        p.path,
        p.parent_path,
        min(p.id) AS object_id,
        count() AS self_count,
        sum(o.self_size) AS self_size
      FROM _hg_paths AS p
      JOIN heap_graph_object AS o USING (id)
      GROUP BY p.path
    )
  SELECT
    n.id,
    (SELECT u.id FROM _hg_nodes AS u WHERE u.path = n.parent_path) AS parent_id,
    o.upid,
    o.graph_sample_ts,
    _heap_graph_class_name(o.type_id) AS name,
    iif(n.parent_path IS NULL, o.root_type, NULL) AS root_type,
    o.heap_type,
    n.self_count,
    n.self_size
  FROM _hg_nodes AS n
  JOIN heap_graph_object AS o ON o.id = n.object_id
);

-- Each node with all below it: (id, cumulative_count, cumulative_size).
CREATE PERFETTO MACRO _heap_graph_class_tree_cumulative(
  -- Nodes: id, parent_id, self_count, self_size.
  nodes TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT a.id, a.cumulative_count, a.cumulative_size
  FROM _graph_aggregating_scan!(
    (SELECT id AS source_node_id, parent_id AS dest_node_id FROM $nodes WHERE parent_id IS NOT NULL),
    (SELECT id, self_count AS cumulative_count, self_size AS cumulative_size FROM $nodes),
    (cumulative_count, cumulative_size),
    (
      SELECT id, sum(cumulative_count) AS cumulative_count, sum(cumulative_size) AS cumulative_size
      FROM $table
      GROUP BY id
    )
  ) AS a
);
