-- Shared graphics buffers of processes as spans.

INCLUDE PERFETTO MODULE android.memory.dmabuf;

-- From each change to the next: (upid, ts, dur, value).
CREATE PERFETTO TABLE _android_memory_cumulative_dmabuf_spans AS
SELECT upid, ts, lead(ts, 1, trace_end()) OVER (PARTITION BY upid ORDER BY ts) - ts AS dur, value
FROM android_memory_cumulative_dmabuf
WHERE upid IS NOT NULL;
