-- Java heaps by the shortest ways from their roots, as trees of objects and of classes.

INCLUDE PERFETTO MODULE android.memory.heap_graph.excluded_refs;
INCLUDE PERFETTO MODULE android.memory.heap_graph.helpers;
INCLUDE PERFETTO MODULE graphs.search;

-- Each object that a root keeps alive below one of those that are nearest to a root: (id, parent_id). Of roots that are
-- equally near the first by the name of its class counts.
CREATE PERFETTO TABLE _heap_graph_object_min_depth_tree AS
SELECT node_id AS id, parent_node_id AS parent_id
FROM graph_reachable_bfs!(
  (
    SELECT owner_id AS source_node_id, owned_id AS dest_node_id
    FROM heap_graph_reference
    WHERE owned_id IS NOT NULL AND id NOT IN (SELECT id FROM _excluded_refs)
    ORDER BY owned_id
  ),
  (
    SELECT o.id AS node_id
    FROM heap_graph_object AS o
    JOIN heap_graph_class AS c ON c.id = o.type_id
    WHERE o.root_type IS NOT NULL
    ORDER BY coalesce(c.deobfuscated_name, c.name), o.id
  )
)
ORDER BY id;

CREATE PERFETTO TABLE _heap_graph_path_hashes AS
SELECT * FROM _heap_graph_type_path_hash!(_heap_graph_object_min_depth_tree);

CREATE PERFETTO TABLE _heap_graph_path_hashes_aggregated AS
SELECT * FROM _heap_graph_path_hash_aggregate!(_heap_graph_path_hashes);

CREATE PERFETTO TABLE _heap_graph_class_tree AS
SELECT * FROM _heap_graph_path_hashes_to_class_tree!(_heap_graph_path_hashes_aggregated);

-- What can be reached along edges from the objects at places, by class.
CREATE PERFETTO MACRO _heap_graph_reached_by_class(
  -- source_node_id, dest_node_id.
  edges TableOrSubquery,
  -- Objects with their places.
  path_hashes TableOrSubquery,
  -- The places.
  path_hash_values TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT
    coalesce(c.deobfuscated_name, c.name) AS class_name,
    o.heap_type,
    o.root_type,
    o.reachable,
    sum(o.self_size) AS total_size,
    sum(o.native_size) AS total_native_size,
    count() AS count
  FROM graph_reachable_bfs!(
    $edges,
    (SELECT h.id AS node_id FROM $path_hash_values AS v JOIN $path_hashes AS h USING (path_hash))
  ) AS b
  JOIN heap_graph_object AS o ON o.id = b.node_id
  JOIN heap_graph_class AS c ON c.id = o.type_id
  GROUP BY 1, 2, 3, 4
  ORDER BY count DESC
);

-- The objects at places and all below them in the tree, by class.
CREATE PERFETTO MACRO _heap_graph_retained_object_count_agg(
  -- Objects with their places.
  path_hashes TableOrSubquery,
  -- The places.
  path_hash_values TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT *
  FROM _heap_graph_reached_by_class!(
    (
      SELECT parent_id AS source_node_id, id AS dest_node_id
      FROM _heap_graph_object_min_depth_tree
      WHERE parent_id IS NOT NULL
    ),
    $path_hashes,
    $path_hash_values
  )
);

-- The objects at places and all above them in the tree, by class.
CREATE PERFETTO MACRO _heap_graph_retaining_object_count_agg(
  -- Objects with their places.
  path_hashes TableOrSubquery,
  -- The places.
  path_hash_values TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT *
  FROM _heap_graph_reached_by_class!(
    (
      SELECT id AS source_node_id, parent_id AS dest_node_id
      FROM _heap_graph_object_min_depth_tree
      WHERE parent_id IS NOT NULL
    ),
    $path_hashes,
    $path_hash_values
  )
);

-- Classes by the number of places at which they are.
CREATE PERFETTO MACRO _heap_graph_duplicate_objects_agg(
  -- Objects with their places.
  path_hashes TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT
    count(DISTINCT h.path_hash) AS path_count,
    count() AS object_count,
    sum(o.self_size) AS total_size,
    sum(o.native_size) AS total_native_size,
    coalesce(c.deobfuscated_name, c.name) AS class_name
  FROM $path_hashes AS h
  JOIN heap_graph_object AS o ON o.id = h.id
  JOIN heap_graph_class AS c ON c.id = o.type_id
  GROUP BY class_name
  ORDER BY path_count DESC
);
