-- Memory shared with devices (DMA-BUF).

INCLUDE PERFETTO MODULE std.thread.with_context;

-- Changes of allocated memory by thread.
CREATE PERFETTO TABLE _raw_dmabuf_events AS
SELECT
  c.ts,
  t.utid,
  CAST(c.value AS INT) AS buf_size,
  extract_arg(c.arg_set_id, 'inode') AS inode
FROM counter AS c
JOIN thread_counter_track AS t ON t.id = c.track_id
WHERE t.name = 'mem.dma_heap_change'
UNION ALL
SELECT
  s.ts,
  extract_arg(t.dimension_arg_set_id, 'utid') AS utid,
  extract_arg(s.arg_set_id, 'buf_size') AS buf_size,
  extract_arg(s.arg_set_id, 'inode') AS inode
FROM slice AS s
JOIN track AS t ON t.id = s.track_id
WHERE t.type = 'android_dma_heap_change';

-- Answers of the allocator of graphics buffers to calls from other processes: it allocates for those who call it.
CREATE PERFETTO TABLE _gralloc_binders AS
SELECT r.id AS reply_id, r.ts, r.dur, rt.utid AS gralloc_utid, ct.utid AS client_utid
FROM slice AS r
JOIN thread_track AS rt ON rt.id = r.track_id
JOIN thread AS h ON h.utid = rt.utid
JOIN process AS p USING (upid)
JOIN flow AS f ON f.slice_in = r.id
JOIN slice AS c ON c.id = f.slice_out
JOIN thread_track AS ct ON ct.id = c.track_id
WHERE r.name = 'binder reply' AND r.dur >= 0 AND (p.name GLOB '/vendor/bin/hw/android.hardware.graphics.allocator*' OR p.name GLOB '/vendor/bin/hw/*gralloc.allocator*');

-- The events with the thread that they are for: the caller, where the allocator worked for one.
CREATE PERFETTO TABLE _attributed_dmabufs AS
SELECT
  e.ts,
  e.inode,
  e.buf_size,
  e.utid AS event_utid,
  coalesce(
    (
      SELECT b.client_utid
      FROM _gralloc_binders AS b
      WHERE b.gralloc_utid = e.utid AND e.ts BETWEEN b.ts AND b.ts + b.dur
      LIMIT 1
    ),
    e.utid
  ) AS utid
FROM _raw_dmabuf_events AS e
ORDER BY e.inode, e.ts;

CREATE PERFETTO INDEX _attributed_dmabufs_inode ON _attributed_dmabufs(inode, ts);

-- The thread that a buffer counts for: of an allocation its own; of a release that of the last event before it, which
-- mostly is the allocation.
CREATE PERFETTO FUNCTION _alloc_source(
  -- Whether it is an allocation.
  is_alloc BOOL,
  -- The buffer's inode.
  inode LONG,
  -- When it was allocated or released.
  ts TIMESTAMP
)
RETURNS LONG AS
SELECT utid
FROM _attributed_dmabufs
WHERE inode = $inode AND iif($is_alloc, ts = $ts, ts < $ts)
ORDER BY ts DESC
LIMIT 1;

-- Allocations (positive) and releases (negative). What was allocated before the recording is not among them when it is
-- released.
CREATE PERFETTO TABLE android_dmabuf_allocs(
  -- Time of the allocation.
  ts TIMESTAMP,
  -- Bytes; negative when it was freed.
  buf_size LONG,
  -- Inode of the buffer: what it is known by.
  inode LONG,
  -- Row of thread.
  utid JOINID(thread.id),
  -- The kernel's number of the thread.
  tid LONG,
  -- Name of the thread.
  thread_name STRING,
  -- Row of process.
  upid JOINID(process.id),
  -- The kernel's number of the process.
  pid LONG,
  -- Name of the process.
  process_name STRING
) AS
SELECT
  e.ts,
  e.buf_size,
  e.inode,
  t.utid,
  t.tid,
  t.thread_name,
  t.upid,
  t.pid,
  t.process_name
FROM (
  SELECT
    a.ts,
    a.buf_size,
    a.inode,
    iif(a.buf_size > 0, a.utid, _alloc_source(FALSE, a.inode, a.ts)) AS utid
  FROM _attributed_dmabufs AS a
) AS e
JOIN _thread_with_process AS t ON t.utid = e.utid
ORDER BY e.ts;

-- Memory that each process holds, over time; of threads without a process each thread.
CREATE PERFETTO TABLE android_memory_cumulative_dmabuf(
  -- Row of process.
  upid JOINID(process.id),
  -- Name of the process.
  process_name STRING,
  -- Row of thread.
  utid JOINID(thread.id),
  -- Name of the thread.
  thread_name STRING,
  -- Time of the value.
  ts TIMESTAMP,
  -- Bytes held from then on.
  value LONG
) AS
SELECT
  upid,
  process_name,
  utid,
  thread_name,
  ts,
  sum(buf_size) OVER (PARTITION BY coalesce(upid, utid), upid IS NULL ORDER BY ts) AS value
FROM android_dmabuf_allocs;
