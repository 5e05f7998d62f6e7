-- Memory of processes next to how ready Android was to end them.

INCLUDE PERFETTO MODULE android.oom_adjuster;
INCLUDE PERFETTO MODULE linux.memory.process;

CREATE VIRTUAL TABLE _mem_ooms_sj
USING SPAN_OUTER_JOIN(android_oom_adj_intervals PARTITIONED upid, _memory_rss_and_swap_per_process_table PARTITIONED upid);

-- The spans in which both stayed the same.
CREATE PERFETTO TABLE memory_oom_score_with_rss_and_swap_per_process(
  -- When the set of values began.
  ts TIMESTAMP,
  -- Duration of the set of values in nanoseconds.
  dur DURATION,
  -- Readiness to be ended: -1000 never, 1000 first.
  score LONG,
  -- How ready Android was to end the process, in words.
  bucket STRING,
  -- Row of process.
  upid JOINID(process.id),
  -- Name of the process.
  process_name STRING,
  -- The kernel's number of the process.
  pid LONG,
  -- The last slice before it in which the system server computed scores (updateOomAdj_…): row of slice; NULL: none.
  oom_adj_id JOINID(slice.id),
  -- Start of that slice; NULL: none.
  oom_adj_ts TIMESTAMP,
  -- Length of that slice; NULL: none.
  oom_adj_dur DURATION,
  -- Track of that slice; NULL: none.
  oom_adj_track_id JOINID(track.id),
  -- Thread of that slice; NULL: none.
  oom_adj_thread_name STRING,
  -- Why scores were computed, as that slice says; NULL: none.
  oom_adj_reason STRING,
  -- Name of the slice around it; NULL: none.
  oom_adj_trigger STRING,
  -- Anonymous memory in RAM, bytes.
  anon_rss LONG,
  -- Mapped files in RAM, bytes.
  file_rss LONG,
  -- Shared memory in RAM, bytes.
  shmem_rss LONG,
  -- All in RAM, bytes.
  rss LONG,
  -- In swap, bytes.
  swap LONG,
  -- Anonymous memory and swap, bytes.
  anon_rss_and_swap LONG,
  -- All in RAM and swap, bytes.
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
  m.file_rss + m.anon_rss + coalesce(m.shmem_rss, 0) AS rss,
  m.swap,
  m.anon_rss + coalesce(m.swap, 0) AS anon_rss_and_swap,
  m.anon_rss + m.file_rss + coalesce(m.shmem_rss, 0) + coalesce(m.swap, 0) AS rss_and_swap
FROM _mem_ooms_sj AS m
JOIN process AS p USING (upid);
