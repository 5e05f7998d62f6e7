-- Java heaps, one row each.

INCLUDE PERFETTO MODULE android.memory.dmabuf_spans;
INCLUDE PERFETTO MODULE android.memory.heap_graph.oome;
INCLUDE PERFETTO MODULE android.oom_adjuster;
INCLUDE PERFETTO MODULE linux.memory.process;

-- The value of a table of spans (upid, ts, dur) that holds the moment of a dump or begins within half a second after it,
-- whichever begins nearest to it.
CREATE PERFETTO MACRO _closest_value(
  upid Expr,
  ts Expr,
  t TableOrSubquery,
  value ColumnName
)
RETURNS Expr AS
(
  SELECT found
  FROM (
    SELECT v.$value AS found, abs(v.ts - $ts) AS distance
    FROM $t AS v
    WHERE v.upid = $upid AND v.ts + v.dur >= $ts AND v.ts <= $ts + 500000000
  )
  ORDER BY distance
  LIMIT 1
);

-- Sizes of the heap and of its process at that time.
CREATE PERFETTO TABLE android_heap_graph_stats(
  -- Row of process.
  upid JOINID(process.id),
  -- When the heap was dumped.
  graph_sample_ts TIMESTAMP,
  -- Age of the process, in nanoseconds.
  process_uptime LONG,
  -- Bytes of all objects.
  total_heap_size LONG,
  -- Bytes outside the heap of all objects.
  total_native_alloc_registry_size LONG,
  -- How many objects.
  total_obj_count LONG,
  -- Bytes of the reachable ones.
  reachable_heap_size LONG,
  -- Bytes of the reachable ones outside the heap.
  reachable_native_alloc_registry_size LONG,
  -- How many of them are reachable.
  reachable_obj_count LONG,
  -- Readiness to be ended: -1000 never, 1000 first.
  oom_score_adj LONG,
  -- Anonymous memory and swap of the process, in bytes.
  anon_rss_and_swap_size LONG,
  -- DMA buffers of the process, in bytes.
  dmabuf_rss_size LONG,
  -- Bytes that the runtime had allocated, as it tells.
  art_bytes_allocated LONG,
  -- Was the dump made because memory ran out? NULL when the recording does not tell.
  is_out_of_memory_error BOOL,
  -- Bytes of the allocation that failed.
  oome_failing_allocation_size LONG,
  -- Bytes that the runtime had left then.
  oome_remaining_art_free_bytes LONG
) AS
WITH
  heaps AS (
    SELECT
      upid,
      graph_sample_ts AS ts,
      sum(self_size) AS total_heap_size,
      sum(native_size) AS total_native,
      count() AS total_count,
      sum(iif(reachable, self_size, 0)) AS reachable_heap_size,
      sum(iif(reachable, native_size, 0)) AS reachable_native,
      sum(reachable) AS reachable_count
    FROM heap_graph_object
    GROUP BY upid, graph_sample_ts
  )
SELECT
  h.upid,
  h.ts AS graph_sample_ts,
  h.ts - p.start_ts AS process_uptime,
  h.total_heap_size,
  h.total_native AS total_native_alloc_registry_size,
  h.total_count AS total_obj_count,
  h.reachable_heap_size,
  h.reachable_native AS reachable_native_alloc_registry_size,
  h.reachable_count AS reachable_obj_count,
  _closest_value!(h.upid, h.ts, android_oom_adj_intervals, score) AS oom_score_adj,
  _closest_value!(h.upid, h.ts, memory_rss_and_swap_per_process, anon_rss_and_swap) AS anon_rss_and_swap_size,
  _closest_value!(h.upid, h.ts, _dmabuf_spans, dmabuf_rss) AS dmabuf_rss_size,
  g.heap_size AS art_bytes_allocated,
  g.dump_reason = 'OOME'
  OR (SELECT str_value FROM metadata WHERE name = 'trace_trigger' LIMIT 1) = 'com.android.telemetry.art-outofmemory'
    AS is_out_of_memory_error,
  o.allocation_size_bytes AS oome_failing_allocation_size,
  o.free_bytes_until_oom AS oome_remaining_art_free_bytes
FROM heaps AS h
JOIN process AS p USING (upid)
LEFT JOIN heap_graph AS g ON g.upid = h.upid AND g.ts = h.ts
LEFT JOIN android_heap_graph_java_oome_details AS o ON o.heap_graph_id = g.id;
