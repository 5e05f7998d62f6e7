-- Memory of processes by kind, less what they share with the process they were forked from.

INCLUDE PERFETTO MODULE android.oom_adjuster;
INCLUDE PERFETTO MODULE counters.intervals;

CREATE PERFETTO TABLE _process_memory_tracks AS
SELECT id AS track_id, upid, iif(name = 'Heap size (KB)', 'mem.heap', name) AS memory_track_name
FROM process_counter_track
WHERE name IN ('mem.rss.anon', 'mem.rss.file', 'mem.rss.shmem', 'mem.swap', 'Heap size (KB)', 'GPU Memory', 'mem.dmabuf_rss',
  'mem.locked');

-- Spans in which a counter of a process stayed the same, within the process's life. Every application begins as a copy of
-- the zygote: its average of a kind is taken off.
CREATE PERFETTO TABLE android_process_memory_intervals(
  -- Row of counter.
  id JOINID(counter.id),
  -- When the value began.
  ts TIMESTAMP,
  -- Duration of the value in nanoseconds.
  dur DURATION,
  -- Name of the process.
  process_name STRING,
  -- Row of process.
  upid JOINID(process.upid),
  -- The kernel's number of the process.
  pid JOINID(process.pid),
  -- Kind of memory: name of the counter.
  memory_track_name STRING,
  -- Row of track.
  track_id JOINID(track.id),
  -- The value, in bytes.
  value LONG,
  -- Bytes less what every application has of the zygote, 0 at least.
  zygote_adjusted_value LONG,
  -- Does the counter change by more than 100 MiB at once anywhere?
  track_has_spike_gt_100mib BOOL
) AS
WITH
  spans AS (
    SELECT
      i.id,
      max(i.ts, coalesce(p.start_ts, i.ts)) AS ts,
      min(i.ts + i.dur, coalesce(p.end_ts, i.ts + i.dur)) AS ts_end,
      p.name AS process_name,
      p.upid,
      p.pid,
      t.memory_track_name,
      i.track_id,
      CAST(i.value AS INT) AS value,
      coalesce(max(abs(i.delta_value) > 100 * 1048576) OVER (PARTITION BY i.track_id), 0) AS track_has_spike_gt_100mib
    FROM counter_leading_intervals!((
      SELECT c.id, c.ts, c.track_id, CAST(c.value AS INT) * iif(t.memory_track_name = 'mem.heap', 1024, 1) AS value
      FROM counter AS c
      JOIN _process_memory_tracks AS t USING (track_id)
    )) AS i
    JOIN _process_memory_tracks AS t USING (track_id)
    JOIN process AS p USING (upid)
  ),
  zygote AS (
    SELECT t.upid, t.memory_track_name, CAST(avg(CAST(c.value AS INT) * iif(t.memory_track_name = 'mem.heap', 1024, 1)) AS INT) AS value
    FROM _process_memory_tracks AS t
    JOIN process AS p USING (upid)
    JOIN counter AS c USING (track_id)
    WHERE p.name IN ('zygote', 'zygote64')
      AND t.memory_track_name IN ('mem.rss.anon', 'mem.swap', 'mem.rss.file', 'mem.heap')
    GROUP BY t.upid, t.memory_track_name
  )
SELECT
  s.id,
  s.ts,
  s.ts_end - s.ts AS dur,
  s.process_name,
  s.upid,
  s.pid,
  s.memory_track_name,
  s.track_id,
  s.value,
  iif(z.value IS NULL, s.value, max(s.value - z.value, 0)) AS zygote_adjusted_value,
  s.track_has_spike_gt_100mib
FROM spans AS s
JOIN process AS own ON own.upid = s.upid
LEFT JOIN zygote AS z
  ON z.upid = own.parent_upid AND z.memory_track_name = s.memory_track_name AND s.process_name NOT IN ('zygote', 'zygote64')
WHERE s.ts_end > s.ts;

CREATE PERFETTO VIEW _process_memory_by_track AS
SELECT ts, dur, track_id, id AS counter_id, process_name, upid, pid, memory_track_name, value, zygote_adjusted_value,
  track_has_spike_gt_100mib
FROM android_process_memory_intervals;

-- How ready Android was to end processes, by each of their tracks: what the spans below are joined with.
CREATE PERFETTO TABLE _memory_breakdown_oom_intervals_prepared AS
SELECT o.ts, o.dur, t.track_id, o.bucket
FROM android_oom_adj_intervals AS o
JOIN _process_memory_tracks AS t USING (upid)
WHERE o.dur > 0;

CREATE VIRTUAL TABLE _process_memory_oom_sj
USING SPAN_LEFT_JOIN(_process_memory_by_track PARTITIONED track_id, _memory_breakdown_oom_intervals_prepared PARTITIONED track_id);

-- The same, apart by how ready Android was to end the process.
CREATE PERFETTO TABLE android_process_memory_intervals_by_oom_bucket(
  -- Number of the span.
  id LONG,
  -- When the value began.
  ts TIMESTAMP,
  -- Duration of the value in nanoseconds.
  dur DURATION,
  -- Name of the process.
  process_name STRING,
  -- Row of process.
  upid JOINID(process.upid),
  -- The kernel's number of the process.
  pid JOINID(process.pid),
  -- How ready Android was to end the process, in words.
  bucket STRING,
  -- Kind of memory: name of the counter.
  memory_track_name STRING,
  -- Row of track.
  track_id JOINID(track.id),
  -- Row of counter.
  counter_id JOINID(counter.id),
  -- The value, in bytes.
  value LONG,
  -- Bytes less what every application has of the zygote, 0 at least.
  zygote_adjusted_value LONG,
  -- Does the counter change by more than 100 MiB at once anywhere?
  track_has_spike_gt_100mib BOOL
) AS
SELECT
  row_number() OVER () AS id,
  ts,
  dur,
  process_name,
  upid,
  pid,
  coalesce(bucket, 'unknown') AS bucket,
  memory_track_name,
  track_id,
  counter_id,
  value,
  zygote_adjusted_value,
  track_has_spike_gt_100mib
FROM _process_memory_oom_sj
WHERE dur > 0;
