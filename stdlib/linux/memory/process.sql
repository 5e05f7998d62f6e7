-- Resident memory and swap of processes.

INCLUDE PERFETTO MODULE linux.memory.general;

CREATE PERFETTO VIEW _anon_rss AS
SELECT ts, dur, upid, value AS anon_rss_val FROM _all_counters_per_process WHERE name = 'mem.rss.anon';

CREATE PERFETTO VIEW _file_rss AS
SELECT ts, dur, upid, value AS file_rss_val FROM _all_counters_per_process WHERE name = 'mem.rss.file';

CREATE PERFETTO VIEW _shmem_rss AS
SELECT ts, dur, upid, value AS shmem_rss_val FROM _all_counters_per_process WHERE name = 'mem.rss.shmem';

CREATE PERFETTO VIEW _swap AS
SELECT ts, dur, upid, value AS swap_val FROM _all_counters_per_process WHERE name = 'mem.swap';

CREATE VIRTUAL TABLE _anon_rss_file_rss_sj
USING SPAN_OUTER_JOIN(_anon_rss PARTITIONED upid, _file_rss PARTITIONED upid);

CREATE VIRTUAL TABLE _anon_rss_file_rss_shmem_sj
USING SPAN_OUTER_JOIN(_anon_rss_file_rss_sj PARTITIONED upid, _shmem_rss PARTITIONED upid);

CREATE VIRTUAL TABLE _anon_rss_file_rss_shmem_swap_sj
USING SPAN_OUTER_JOIN(_anon_rss_file_rss_shmem_sj PARTITIONED upid, _swap PARTITIONED upid);

CREATE PERFETTO TABLE _memory_rss_and_swap_per_process_table AS
SELECT
  ts,
  dur,
  upid,
  CAST(anon_rss_val AS INT) AS anon_rss,
  CAST(file_rss_val AS INT) AS file_rss,
  CAST(shmem_rss_val AS INT) AS shmem_rss,
  CAST(swap_val AS INT) AS swap
FROM _anon_rss_file_rss_shmem_swap_sj;

-- Resident memory and swap of each process over time, in bytes.
CREATE PERFETTO VIEW memory_rss_and_swap_per_process(
  -- When the set of values began.
  ts TIMESTAMP,
  -- Duration of the set of values in nanoseconds.
  dur DURATION,
  -- Row of process.
  upid JOINID(process.id),
  -- The kernel's number of the process.
  pid LONG,
  -- Name of the process.
  process_name STRING,
  -- Resident memory that no file is behind.
  anon_rss LONG,
  -- Resident pages of files.
  file_rss LONG,
  -- Resident shared memory.
  shmem_rss LONG,
  -- All resident memory.
  rss LONG,
  -- Memory in swap.
  swap LONG,
  -- Anonymous memory, resident or in swap.
  anon_rss_and_swap LONG,
  -- All memory, resident or in swap.
  rss_and_swap LONG
) AS
SELECT
  m.ts,
  m.dur,
  m.upid,
  p.pid,
  p.name AS process_name,
  m.anon_rss,
  m.file_rss,
  m.shmem_rss,
  m.file_rss + m.anon_rss + coalesce(m.shmem_rss, 0) AS rss,
  m.swap,
  m.anon_rss + coalesce(m.swap, 0) AS anon_rss_and_swap,
  m.anon_rss + m.file_rss + coalesce(m.shmem_rss, 0) + coalesce(m.swap, 0) AS rss_and_swap
FROM _memory_rss_and_swap_per_process_table AS m
JOIN process AS p USING (upid);
