-- Memory of processes next to how ready Android was to end them.

INCLUDE PERFETTO MODULE android.oom_adjuster;
INCLUDE PERFETTO MODULE linux.memory.process;

CREATE VIRTUAL TABLE _mem_ooms_sj
USING SPAN_OUTER_JOIN(android_oom_adj_intervals PARTITIONED upid, _memory_rss_and_swap_per_process_table PARTITIONED upid);

-- The spans in which both stayed the same.
CREATE PERFETTO TABLE memory_oom_score_with_rss_and_swap_per_process(
  ts TIMESTAMP,
  dur DURATION,
  score LONG,
  bucket STRING,
  upid JOINID(process.id),
  process_name STRING,
  pid LONG,
  oom_adj_id JOINID(slice.id),
  oom_adj_ts TIMESTAMP,
  oom_adj_dur DURATION,
  oom_adj_track_id JOINID(track.id),
  oom_adj_thread_name STRING,
  oom_adj_reason STRING,
  oom_adj_trigger STRING,
  anon_rss LONG,
  file_rss LONG,
  shmem_rss LONG,
  rss LONG,
  swap LONG,
  anon_rss_and_swap LONG,
  rss_and_swap LONG
) AS
SELECT
  m.ts,
  m.dur,
  m.score,
  m.bucket,
  m.upid,
  p.name AS process_name,
  p.pid,
  m.oom_adj_id,
  m.oom_adj_ts,
  m.oom_adj_dur,
  m.oom_adj_track_id,
  m.oom_adj_thread_name,
  m.oom_adj_reason,
  m.oom_adj_trigger,
  m.anon_rss,
  m.file_rss,
  m.shmem_rss,
  m.rss,
  m.swap,
  m.anon_rss + coalesce(m.swap, 0) AS anon_rss_and_swap,
  m.rss + coalesce(m.swap, 0) AS rss_and_swap
FROM _mem_ooms_sj AS m
JOIN process AS p USING (upid);
