-- Native memory by the call stacks that asked for it.

INCLUDE PERFETTO MODULE callstacks.stack_profile;

-- The trees: (id, parent_id, callsite_id, name, mapping_name, source_file, line_number, self_size, self_count,
-- self_alloc_size, self_alloc_count).
CREATE PERFETTO MACRO _android_heap_profile_callstacks_for_allocations(
  -- Allocations: callsite_id, size, count, alloc_size, alloc_count.
  allocations TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH
    _ahp_values AS MATERIALIZED (
      SELECT
        callsite_id,
        sum(size) AS self_size,
        sum(count) AS self_count,
        sum(alloc_size) AS self_alloc_size,
        sum(alloc_count) AS self_alloc_count
      FROM $allocations
      GROUP BY callsite_id
    )
  SELECT
    n.id,
    n.parent_id,
    n.name,
    n.mapping_name,
    n.source_file,
    n.line_number,
    coalesce(v.self_size, 0) AS self_size,
    coalesce(v.self_count, 0) AS self_count,
    coalesce(v.self_alloc_size, 0) AS self_alloc_size,
    coalesce(v.self_alloc_count, 0) AS self_alloc_count
  FROM _callstacks_for_stack_profile_samples!(_ahp_values) AS n
  LEFT JOIN _ahp_values AS v ON n.is_leaf_function_in_callsite_frame AND v.callsite_id = n.callsite_id
);
