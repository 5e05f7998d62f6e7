-- Objects of a Java heap with all that hangs below them on the shortest ways from the roots.

INCLUDE PERFETTO MODULE android.memory.heap_graph.class_tree;
INCLUDE PERFETTO MODULE android.memory.heap_graph.helpers;

-- Each object with itself and all below it; those that nothing keeps alive with themselves alone: (id, cumulative_size,
-- cumulative_native_size, cumulative_count).
CREATE PERFETTO TABLE _heap_graph_object_tree_aggregation AS
SELECT
  o.id,
  coalesce(s.cumulative_size, o.self_size) AS cumulative_size,
  coalesce(s.cumulative_native_size, o.native_size) AS cumulative_native_size,
  coalesce(s.cumulative_count, 1) AS cumulative_count
FROM heap_graph_object AS o
LEFT JOIN _heap_graph_tree_sums!((
  SELECT t.id, t.parent_id, 1 AS self_count, o.self_size, o.native_size
  FROM _heap_graph_object_min_depth_tree AS t
  JOIN heap_graph_object AS o ON o.id = t.id
)) AS s ON s.id = o.id
ORDER BY o.id;

-- Objects at places that refer to others, with what hangs below them.
CREATE PERFETTO MACRO _heap_graph_object_references_agg(
  -- Objects with their places: id, path_hash.
  path_hashes TableOrSubquery,
  -- The places: path_hash.
  path_hash_values TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT
    h.path_hash,
    coalesce(c.deobfuscated_name, c.name) AS class_name,
    count(r.owned_id) AS outgoing_reference_count,
    a.cumulative_native_size + a.cumulative_size AS total_cumulative_size,
    a.cumulative_size,
    a.cumulative_native_size,
    a.cumulative_count,
    o.*
  FROM $path_hash_values AS v
  JOIN $path_hashes AS h USING (path_hash)
  JOIN heap_graph_object AS o ON o.id = h.id
  JOIN _heap_graph_object_tree_aggregation AS a ON a.id = o.id
  JOIN heap_graph_class AS c ON c.id = o.type_id
  JOIN heap_graph_reference AS r ON r.owner_id = o.id
  GROUP BY o.id
  ORDER BY total_cumulative_size DESC
);

-- Objects at places, with the other ends of their references: those that refer to them, or that they refer to.
CREATE PERFETTO MACRO _heap_graph_neighbours_of(
  -- Objects with their places: id, path_hash.
  path_hashes TableOrSubquery,
  -- The places: path_hash.
  path_hash_values TableOrSubquery,
  -- Column of the reference with the object.
  this ColumnName,
  -- Column of the reference with the other one.
  that ColumnName
)
RETURNS TableOrSubquery AS
(
  SELECT
    h.path_hash,
    coalesce(c.deobfuscated_name, c.name) AS class_name,
    coalesce(r.deobfuscated_field_name, r.field_name) AS field_name,
    r.field_type_name,
    o.*
  FROM $path_hash_values AS v
  JOIN $path_hashes AS h USING (path_hash)
  JOIN heap_graph_reference AS r ON r.$this = h.id
  JOIN heap_graph_object AS o ON o.id = r.$that
  JOIN heap_graph_class AS c ON c.id = o.type_id
  ORDER BY o.self_size DESC
);

CREATE PERFETTO MACRO _heap_graph_incoming_references_agg(
  -- Objects with their places.
  path_hashes TableOrSubquery,
  -- The places.
  path_hash_values TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT * FROM _heap_graph_neighbours_of!($path_hashes, $path_hash_values, owned_id, owner_id)
);

CREATE PERFETTO MACRO _heap_graph_outgoing_references_agg(
  -- Objects with their places.
  path_hashes TableOrSubquery,
  -- The places.
  path_hash_values TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT * FROM _heap_graph_neighbours_of!($path_hashes, $path_hash_values, owner_id, owned_id)
);
