-- Which classes of a Java heap extend which.

-- All classes that descend from the given ones: (id, ancestor_class_id, ancestor_class_name).
CREATE PERFETTO MACRO android_heap_graph_class_find_descendants(
  -- Classes: id.
  ancestor_class_ids TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH RECURSIVE
    _hgc_below(id, ancestor_class_id) AS (
      SELECT id, id FROM $ancestor_class_ids
      UNION
      SELECT c.id, b.ancestor_class_id
      FROM _hgc_below AS b
      JOIN heap_graph_class AS c ON c.superclass_id = b.id
    )
  SELECT b.id, b.ancestor_class_id, a.name AS ancestor_class_name
  FROM _hgc_below AS b
  JOIN heap_graph_class AS a ON a.id = b.ancestor_class_id
);
