-- Java heaps by class.

INCLUDE PERFETTO MODULE android.memory.heap_graph.helpers;
INCLUDE PERFETTO MODULE android.memory.heap_graph.dominator_tree;

-- True for classes of the language and its library, and for arrays.
CREATE PERFETTO FUNCTION _is_libcore_or_array(
  obj_name STRING
)
RETURNS BOOL AS
SELECT
  $obj_name GLOB 'java.*' AND NOT $obj_name GLOB 'java.lang.Class<*>'
  OR $obj_name GLOB 'j$.*'
  OR rtrim($obj_name, '[]') IN ('int', 'long', 'byte', 'char', 'short', 'float', 'double', 'boolean') AND $obj_name GLOB '*[[]*'
  OR $obj_name GLOB 'android.util.*Array*'
  OR $obj_name GLOB 'kotlinx.coroutines.*'
  OR $obj_name GLOB 'kotlinx.atomicfu.*';

-- The node above all roots of the tree below: a number no object has.
CREATE PERFETTO FUNCTION _partition_tree_super_root_fn()
RETURNS LONG AS
SELECT max(id) + 1 FROM heap_graph_object;

-- The tree of dominators with that node above it, and the class of each: (id, parent_id, group_key).
CREATE PERFETTO TABLE _heap_graph_dominator_tree_for_partition AS
SELECT t.id, coalesce(t.idom_id, _partition_tree_super_root_fn()) AS parent_id, o.type_id AS group_key
FROM heap_graph_dominator_tree AS t
JOIN heap_graph_object AS o USING (id)
UNION ALL
SELECT _partition_tree_super_root_fn() AS id, NULL, (SELECT max(id) + 1 FROM heap_graph_class)
WHERE EXISTS (SELECT 1 FROM heap_graph_dominator_tree);

-- Objects, and whether what they dominate counts for their class: no object of their own class dominates them, so that it counts
-- once.
CREATE PERFETTO TABLE _heap_object_marked_for_dominated_stats AS
WITH RECURSIVE
  above(id, group_key, at) AS (
    SELECT id, group_key, parent_id FROM _heap_graph_dominator_tree_for_partition WHERE parent_id IS NOT NULL
    UNION ALL
    SELECT a.id, a.group_key, t.parent_id
    FROM above AS a
    JOIN _heap_graph_dominator_tree_for_partition AS t ON t.id = a.at
    WHERE t.group_key != a.group_key AND t.parent_id IS NOT NULL
  ),
  below AS (
    SELECT DISTINCT a.id
    FROM above AS a
    JOIN _heap_graph_dominator_tree_for_partition AS t ON t.id = a.at
    WHERE t.group_key = a.group_key
  )
SELECT id, id NOT IN (SELECT id FROM below) AS marked
FROM heap_graph_dominator_tree;

-- Objects of each class, and what they keep alive.
CREATE PERFETTO TABLE android_heap_graph_class_aggregation(
  -- Row of process.
  upid JOINID(process.id),
  -- When the heap was dumped.
  graph_sample_ts TIMESTAMP,
  -- Row of heap_graph_class.
  type_id LONG,
  -- Name of the class.
  type_name STRING,
  -- Is it of Java's own library, or an array?
  is_libcore_or_array BOOL,
  -- How many objects.
  obj_count LONG,
  -- Their bytes.
  size_bytes LONG,
  -- Their bytes outside the heap.
  native_size_bytes LONG,
  -- How many of them are reachable.
  reachable_obj_count LONG,
  -- Bytes of the reachable ones.
  reachable_size_bytes LONG,
  -- Bytes of the reachable ones outside the heap.
  reachable_native_size_bytes LONG,
  -- Objects that would go with them; of objects one below another of the class, the upper counts.
  dominated_obj_count LONG,
  -- Bytes of those.
  dominated_size_bytes LONG,
  -- Bytes outside the heap of those.
  dominated_native_size_bytes LONG
) AS
WITH
  classes AS (
    SELECT
      o.upid,
      o.graph_sample_ts,
      o.type_id,
      count() AS obj_count,
      sum(o.self_size) AS size_bytes,
      sum(o.native_size) AS native_size_bytes,
      sum(o.reachable) AS reachable_obj_count,
      sum(iif(o.reachable, o.self_size, 0)) AS reachable_size_bytes,
      sum(iif(o.reachable, o.native_size, 0)) AS reachable_native_size_bytes,
      coalesce(sum(d.dominated_obj_count), 0) AS dominated_obj_count,
      coalesce(sum(d.dominated_size_bytes), 0) AS dominated_size_bytes,
      coalesce(sum(d.dominated_native_size_bytes), 0) AS dominated_native_size_bytes
    FROM heap_graph_object AS o
    LEFT JOIN _heap_object_marked_for_dominated_stats AS m USING (id)
    LEFT JOIN heap_graph_dominator_tree AS d ON d.id = m.id AND m.marked
    GROUP BY o.upid, o.graph_sample_ts, o.type_id
  )
SELECT
  c.upid,
  c.graph_sample_ts,
  c.type_id,
  _heap_graph_class_name(c.type_id) AS type_name,
  _is_libcore_or_array(_heap_graph_class_name(c.type_id)) AS is_libcore_or_array,
  c.obj_count,
  c.size_bytes,
  c.native_size_bytes,
  c.reachable_obj_count,
  c.reachable_size_bytes,
  c.reachable_native_size_bytes,
  c.dominated_obj_count,
  c.dominated_size_bytes,
  c.dominated_native_size_bytes
FROM classes AS c
ORDER BY c.upid, c.graph_sample_ts, c.type_id;
