-- Folding trees of a Java heap's objects by class: what other modules about heap dumps share.

-- The name of a class as people write it.
CREATE PERFETTO FUNCTION _heap_graph_class_name(
  -- The class.
  class_id LONG
)
RETURNS STRING AS
SELECT coalesce(deobfuscated_name, name) FROM heap_graph_class WHERE id = $class_id;

-- Classes by a hash of the name that people write; one that several loaders have loaded is one.
CREATE PERFETTO TABLE _heap_graph_class_name_hash AS
SELECT id, hash(coalesce(deobfuscated_name, name, '')) AS name_hash
FROM heap_graph_class;

-- Each object of a tree with a hash of the classes on its way from the root, and that of its parent; 0 above roots. An
-- object below one of its own class, as in a linked list, is at the same place: (id, path_hash, parent_path_hash).
CREATE PERFETTO MACRO _heap_graph_type_path_hash(
  -- Objects: id, parent_id (NULL at roots).
  tab TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH RECURSIVE
    _hg_tree AS MATERIALIZED (SELECT id, parent_id FROM $tab),
    _hg_ways(id, name_hash, path_hash, parent_path_hash) AS (
      SELECT
        t.id,
        c.name_hash,
        hash(o.upid, o.graph_sample_ts, c.name_hash, coalesce(o.root_type, ''), coalesce(o.heap_type, '')),
        0
      FROM _hg_tree AS t
      JOIN heap_graph_object AS o ON o.id = t.id
      JOIN _heap_graph_class_name_hash AS c ON c.id = o.type_id
      WHERE t.parent_id IS NULL
      UNION ALL
      SELECT
        t.id,
        c.name_hash,
        iif(c.name_hash = w.name_hash, w.path_hash, hash(w.path_hash, c.name_hash, coalesce(o.heap_type, ''))),
        iif(c.name_hash = w.name_hash, w.parent_path_hash, w.path_hash)
      FROM _hg_ways AS w
      JOIN _hg_tree AS t ON t.parent_id = w.id
      JOIN heap_graph_object AS o ON o.id = t.id
      JOIN _heap_graph_class_name_hash AS c ON c.id = o.type_id
    )
  SELECT id, path_hash, parent_path_hash FROM _hg_ways ORDER BY id
);

-- Objects at the same place together. What they hold outside of the heap is a node "[native] CLASS" below them.
CREATE PERFETTO MACRO _heap_graph_path_hash_aggregate(
  -- What _heap_graph_type_path_hash! gives.
  tab TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH
    _hg_places AS MATERIALIZED (
      SELECT
        o.graph_sample_ts,
        o.upid,
        p.path_hash,
        p.parent_path_hash,
        coalesce(c.deobfuscated_name, c.name) AS name,
        o.root_type,
        o.heap_type,
        count() AS self_count,
        sum(o.self_size) AS self_size,
        sum(o.native_size > 0) AS native_count,
        sum(o.native_size) AS native_size
      FROM $tab AS p
      JOIN heap_graph_object AS o ON o.id = p.id
      JOIN heap_graph_class AS c ON c.id = o.type_id
      GROUP BY p.path_hash
    )
  SELECT
    graph_sample_ts, upid, path_hash, parent_path_hash, name, root_type, heap_type, self_count, self_size
  FROM _hg_places
  UNION ALL
  SELECT
    graph_sample_ts, upid, hash(path_hash, 'native', ''), path_hash, '[native] ' || name, root_type,
    'HEAP_TYPE_NATIVE', native_count, native_size
  FROM _hg_places
  WHERE native_size > 0
  ORDER BY path_hash
);

-- The same with numbers for the places: (graph_sample_ts, upid, id, parent_id, name, root_type, heap_type, self_count,
-- self_size, path_hash_stable). The hash is the same in other dumps of the process at that time.
CREATE PERFETTO MACRO _heap_graph_path_hashes_to_class_tree(
  -- A table of what _heap_graph_path_hash_aggregate! gives.
  tab TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH
    _hg_nodes AS MATERIALIZED (SELECT *, row_number() OVER (ORDER BY path_hash) - 1 AS id FROM $tab)
  SELECT
    n.graph_sample_ts,
    n.upid,
    n.id,
    (SELECT u.id FROM _hg_nodes AS u WHERE u.path_hash = n.parent_path_hash) AS parent_id,
    n.name,
    n.root_type,
    n.heap_type,
    n.self_count,
    n.self_size,
    n.path_hash AS path_hash_stable
  FROM _hg_nodes AS n
  ORDER BY n.id
);

-- Each node of a tree with all below it: (id, cumulative_count, cumulative_size, cumulative_native_size).
CREATE PERFETTO MACRO _heap_graph_tree_sums(
  -- Nodes: id, parent_id, self_count, self_size, native_size.
  nodes TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT c0 AS id, c1 AS cumulative_count, c2 AS cumulative_size, c3 AS cumulative_native_size
  FROM __intrinsic_table_ptr((
    SELECT __intrinsic_tree_dominator_summary(
      __intrinsic_tree_from_table(
        'id', id, 'parent_id', parent_id, 'self_size', self_size, 'native_size', native_size, 'self_count', self_count
      )
    )
    FROM $nodes
  ))
  WHERE
    __intrinsic_table_ptr_bind(c0, 'id')
    AND __intrinsic_table_ptr_bind(c1, 'dominated_obj_count')
    AND __intrinsic_table_ptr_bind(c2, 'dominated_size_bytes')
    AND __intrinsic_table_ptr_bind(c3, 'dominated_native_size_bytes')
);
