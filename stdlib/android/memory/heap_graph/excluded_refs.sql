-- References that keep nothing alive: those that weak, soft, phantom and finalizer references hold.

-- Classes of such references, and those below them: (id).
CREATE PERFETTO TABLE _ref_type_ids AS
WITH RECURSIVE
  kinds(id) AS (
    SELECT id
    FROM heap_graph_class
    WHERE kind IN (
      'KIND_FINALIZER_REFERENCE', 'KIND_PHANTOM_REFERENCE', 'KIND_SOFT_REFERENCE', 'KIND_WEAK_REFERENCE'
    )
    UNION
    SELECT c.id FROM kinds AS k JOIN heap_graph_class AS c ON c.superclass_id = k.id
  )
SELECT id FROM kinds;

-- What they refer to: (id), rows of heap_graph_reference.
CREATE PERFETTO TABLE _excluded_refs AS
SELECT r.id
FROM _ref_type_ids AS k
JOIN heap_graph_object AS o ON o.type_id = k.id
JOIN heap_graph_reference AS r USING (reference_set_id)
WHERE r.field_name = 'java.lang.ref.Reference.referent'
ORDER BY r.id;
