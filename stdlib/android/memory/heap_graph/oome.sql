-- What heap dumps tell that were made because memory ran out.

-- One row a dump.
CREATE PERFETTO VIEW android_heap_graph_java_oome_details(
  -- Row of the details.
  id ID,
  -- The dump.
  heap_graph_id JOINID(heap_graph.id),
  -- Size of the allocation that failed.
  allocation_size_bytes LONG,
  -- Free bytes of the heap.
  total_bytes_free LONG,
  -- Bytes that the heap could still have grown by.
  free_bytes_until_oom LONG,
  -- Text of the error.
  error_msg STRING
) AS
SELECT id, heap_graph_id, allocation_size_bytes, total_bytes_free, free_bytes_until_oom, error_msg
FROM __intrinsic_heap_graph_java_oome_details;
