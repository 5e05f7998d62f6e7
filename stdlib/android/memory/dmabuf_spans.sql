-- How much memory in DMA buffers processes have mapped.

INCLUDE PERFETTO MODULE counters.intervals;

-- From each change on: (upid, ts, dur, dmabuf_rss), in bytes.
CREATE PERFETTO TABLE _dmabuf_spans AS
SELECT t.upid, i.ts, i.dur, CAST(i.value AS INT) AS dmabuf_rss
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, c.track_id, c.value
  FROM counter AS c
  JOIN counter_track AS k ON k.id = c.track_id
  WHERE k.name = 'mem.dmabuf_rss'
)) AS i
JOIN process_counter_track AS t ON t.id = i.track_id;
