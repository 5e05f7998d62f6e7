-- Shared graphics buffers of processes as spans.

INCLUDE PERFETTO MODULE android.memory.dmabuf;

-- From each change to the next: (upid, ts, dur, value).
CREATE PERFETTO TABLE _android_memory_cumulative_dmabuf_spans AS
SELECT upid, ts, lead(ts, 1, trace_end()) OVER (PARTITION BY upid ORDER BY ts) - ts AS dur, value
FROM android_memory_cumulative_dmabuf
WHERE upid IS NOT NULL;

-- Buffers from their allocation to their release, or to the end of the trace: (inode, buf_size, ts, dur, utid).
CREATE PERFETTO TABLE _dmabuf_spans AS
SELECT
  a.inode,
  a.buf_size,
  a.ts,
  coalesce(
    (SELECT min(r.ts) FROM _raw_dmabuf_events AS r WHERE r.inode = a.inode AND r.buf_size < 0 AND r.ts >= a.ts), trace_end()
  ) - a.ts AS dur,
  a.utid
FROM _attributed_dmabufs AS a
WHERE a.buf_size > 0;
