-- What is missing from the trace, who lost it, and what to do about it.

-- Every counter of loss or error that is not zero, the worst first.
CREATE PERFETTO TABLE dataloss_summary(
  -- Name of the statistic.
  name STRING,
  -- Index, such as a CPU or a buffer; NULL when it has none.
  idx LONG,
  -- Row of machine.
  machine_id JOINID(machine.id),
  -- 'data_loss' or 'error'.
  severity STRING,
  -- Where it was lost: 'trace' when recorded, 'analysis' when read.
  source STRING,
  -- How much.
  value LONG,
  -- Part of the system that lost it.
  lost_by STRING,
  -- What helps.
  remedy STRING,
  -- What the statistic means.
  description STRING
) AS
SELECT
  name,
  idx,
  machine_id,
  severity,
  source,
  value,
  CASE
    WHEN name GLOB 'ftrace_cpu_*' OR name GLOB 'ftrace_kernel*' THEN 'kernel ring buffer'
    WHEN name GLOB 'ftrace_*' THEN 'ftrace data source'
    WHEN name GLOB 'traced_buf_*' THEN 'trace buffer of the service'
    WHEN name GLOB 'traced_*' THEN 'tracing service'
    WHEN name GLOB 'clock_sync*' THEN 'clock synchronisation'
    WHEN name GLOB '*tokenizer*' OR name GLOB '*parse*' THEN 'importer'
    ELSE iif(source = 'trace', 'recording', 'importer')
  END AS lost_by,
  CASE
    WHEN name GLOB 'ftrace_cpu_overrun*' OR name GLOB 'ftrace_cpu_*events_overwritten*' OR name GLOB '*_has_data_loss*'
      THEN 'Make ftrace_config.buffer_size_kb larger or drain_period_ms shorter, or record fewer events.'
    WHEN name GLOB 'traced_buf_chunks_overwritten*' OR name GLOB 'traced_buf_bytes_overwritten*'
      THEN 'Make the trace buffer (buffers.size_kb) larger, or write to a file while recording (write_into_file).'
    WHEN name GLOB 'traced_buf_chunks_discarded*'
      THEN 'The buffer was full and does not wrap (fill_policy DISCARD): make it larger or use RING_BUFFER.'
    WHEN name GLOB 'traced_buf_*packet_loss*' OR name GLOB 'traced_buf_incremental*'
      THEN 'The shared memory of a producer was full: make shmem_size_kb larger.'
    WHEN name GLOB 'clock_sync*'
      THEN 'Take clock snapshots more often (builtin_data_sources.snapshot_interval_ms), and look at the module clocks.quality.'
    ELSE 'See the description.'
  END AS remedy,
  description
FROM stats
WHERE severity IN ('data_loss', 'error') AND value > 0
ORDER BY severity, value DESC;

-- True when nothing is missing that is known of.
CREATE PERFETTO FUNCTION dataloss_is_clean()
-- True or false.
RETURNS BOOL AS
SELECT NOT EXISTS (SELECT 1 FROM dataloss_summary);
