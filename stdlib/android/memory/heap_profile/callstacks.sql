-- Native memory by the call stacks that asked for it.

INCLUDE PERFETTO MODULE callstacks.stack_profile;

-- The trees: (id, parent_id, callsite_id, name, mapping_name, source_file, line_number, self_size, self_alloc_size).
-- Freed memory is a negative size in the profile: what was asked for is the sum of the positive ones.
CREATE PERFETTO MACRO _android_heap_profile_callstacks_for_allocations(
  -- Allocations: callsite_id, size.
  allocations TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT
    n.id, n.parent_id, n.callsite_id, n.name, n.mapping_name, n.source_file, n.line_number,
    n.self_value AS self_size,
    a.self_value AS self_alloc_size
  FROM _callstacks_for_callsites_weighted!((SELECT callsite_id, size AS value FROM $allocations)) AS n
  JOIN _callstacks_for_callsites_weighted!((SELECT callsite_id, max(size, 0) AS value FROM $allocations)) AS a USING (id)
);
