-- References that keep nothing alive: those that weak, phantom and finalizer references hold.

-- Classes of such references: (type_id).
CREATE PERFETTO TABLE _ref_type_ids AS
SELECT id AS type_id
FROM heap_graph_class
WHERE kind IN ('KIND_FINALIZER_REFERENCE', 'KIND_PHANTOM_REFERENCE', 'KIND_WEAK_REFERENCE')
ORDER BY 1;

-- What they refer to: (id), rows of heap_graph_reference.
CREATE PERFETTO TABLE _excluded_refs AS
SELECT r.id
FROM _ref_type_ids AS k
JOIN heap_graph_object AS o USING (type_id)
JOIN heap_graph_reference AS r USING (reference_set_id)
WHERE r.field_name = 'java.lang.ref.Reference.referent'
ORDER BY r.id;
