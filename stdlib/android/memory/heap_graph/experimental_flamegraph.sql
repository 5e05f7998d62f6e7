-- A single heap dump as the frames of a flame graph.

INCLUDE PERFETTO MODULE android.memory.heap_graph.class_tree;

-- Whether a dump has anything to show, and whether its end is missing: (has_roots, truncated).
CREATE PERFETTO MACRO _experimental_flamegraph_heap_graph_state(
  -- The process.
  upid Expr,
  -- When it was dumped.
  ts Expr
)
RETURNS TableOrSubquery AS
(
  SELECT
    EXISTS (
      SELECT 1 FROM heap_graph_object WHERE upid = $upid AND graph_sample_ts = $ts AND root_type IS NOT NULL
    ) AS has_roots,
    (SELECT max(truncated) FROM heap_graph WHERE upid = $upid AND ts = $ts) AS truncated
);

-- The frames: the classes on the shortest ways from the roots; (id, parent_id, name, map_name, count, size, alloc_count,
-- alloc_size).
CREATE PERFETTO MACRO _experimental_flamegraph_heap_graph_frames(
  -- The process.
  upid Expr,
  -- When it was dumped.
  ts Expr
)
RETURNS TableOrSubquery AS
(
  SELECT
    id,
    parent_id,
    coalesce(name, '') AS name,
    'JAVA' AS map_name,
    self_count AS count,
    self_size AS size,
    0 AS alloc_count,
    0 AS alloc_size
  FROM _heap_graph_class_tree
  WHERE upid = $upid AND graph_sample_ts = $ts
  ORDER BY id
);
