-- What heap dumps tell that were made because memory ran out.

-- One row a dump.
CREATE PERFETTO VIEW android_heap_graph_java_oome_details(
  id ID,
  heap_graph_id JOINID(heap_graph.id),
  allocation_size_bytes LONG,
  total_bytes_free LONG,
  free_bytes_until_oom LONG,
  error_msg STRING
) AS
SELECT
  id,
  id AS heap_graph_id,
  NULL AS allocation_size_bytes,
  NULL AS total_bytes_free,
  NULL AS free_bytes_until_oom,
  NULL AS error_msg
FROM heap_graph
WHERE dump_reason = 'OOME' OR dump_reason = 'OutOfMemoryError';
