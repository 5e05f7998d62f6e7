-- CPU cycles and utilisation of processes.

INCLUDE PERFETTO MODULE linux.cpu.utilization.general;
INCLUDE PERFETTO MODULE linux.cpu.utilization.thread_cpu;

-- Utilisation by one process in pieces of a given length.
CREATE PERFETTO FUNCTION cpu_process_utilization_per_period(
  -- Length of a piece.
  interval LONG,
  -- Row of process.
  upid JOINID(process.id)
)
RETURNS TABLE(
  -- Start of the piece.
  ts TIMESTAMP,
  -- Part of the time of all CPUs, 0 to 1.
  utilization DOUBLE,
  -- The same counted in CPUs.
  unnormalized_utilization DOUBLE
) AS
SELECT ts, utilization, unnormalized_utilization
FROM _cpu_avg_utilization_per_period!(
  $interval,
  (SELECT s.ts, s.ts_end, s.utid FROM sched AS s JOIN thread AS t USING (utid) WHERE t.upid = $upid AND NOT t.is_idle)
);

-- Utilisation by one process second by second.
CREATE PERFETTO FUNCTION cpu_process_utilization_per_second(
  -- Row of process.
  upid JOINID(process.id)
)
RETURNS TABLE(
  -- Start of the piece.
  ts TIMESTAMP,
  -- Part of the time of all CPUs, 0 to 1.
  utilization DOUBLE,
  -- The same counted in CPUs.
  unnormalized_utilization DOUBLE
) AS
SELECT ts, utilization, unnormalized_utilization
FROM cpu_process_utilization_per_period(1000000000, $upid);

-- Cycles of each process over the whole trace.
CREATE PERFETTO TABLE cpu_cycles_per_process(
  -- Row of process.
  upid JOINID(process.id),
  -- Thousandths of cycles; NULL when the frequency is not known.
  millicycles LONG,
  -- Millions of cycles.
  megacycles LONG,
  -- Time on CPUs.
  runtime DURATION,
  -- Lowest frequency, in kHz.
  min_freq LONG,
  -- Highest frequency, in kHz.
  max_freq LONG,
  -- Frequency on average, in kHz.
  avg_freq LONG
) AS
SELECT
  thread.upid,
  _cpu_cycles_sums!()
FROM cpu_cycles_per_thread_per_cpu
JOIN thread USING (utid)
WHERE thread.upid IS NOT NULL
GROUP BY thread.upid;

-- Cycles of each process in a window.
CREATE PERFETTO FUNCTION cpu_cycles_per_process_in_interval(
  -- Start of the window.
  ts TIMESTAMP,
  -- Duration of the window in nanoseconds.
  dur LONG
)
RETURNS TABLE(
  -- Row of process.
  upid JOINID(process.id),
  -- Thousandths of cycles; NULL when the frequency is not known.
  millicycles LONG,
  -- Millions of cycles.
  megacycles LONG,
  -- Time on CPUs.
  runtime DURATION,
  -- Time on CPUs while the machine was awake.
  awake_runtime DURATION,
  -- Lowest frequency, in kHz.
  min_freq LONG,
  -- Highest frequency, in kHz.
  max_freq LONG,
  -- Frequency on average, in kHz.
  avg_freq LONG
) AS
SELECT
  c.upid,
  c.millicycles,
  c.megacycles,
  c.runtime,
  c.awake_runtime,
  c.min_freq,
  c.max_freq,
  c.avg_freq
FROM (
  SELECT
    thread.upid,
    _cpu_cycles_columns!(f.dur, f.freq),
    sum(_awake_time!(f.ts, f.dur)) AS awake_runtime
  FROM _cpu_freq_in_window!($ts, $dur) AS f
  JOIN thread USING (utid)
  GROUP BY thread.upid
) AS c;

-- Utilisation by each process in a window.
CREATE PERFETTO FUNCTION cpu_process_utilization_in_interval(
  -- Start of the window.
  ts TIMESTAMP,
  -- Duration of the window in nanoseconds.
  dur LONG
)
RETURNS TABLE(
  -- Row of process.
  upid JOINID(process.id),
  -- Name of the process.
  process_name STRING,
  -- Time on CPUs.
  awake_dur LONG,
  -- Part of the time of all CPUs, 0 to 1.
  awake_utilization DOUBLE,
  -- The same counted in CPUs.
  awake_unnormalized_utilization DOUBLE
) AS
SELECT
  c.upid,
  process.name AS process_name,
  _cpu_utilization_columns!(c.awake_runtime, $ts, $dur, 6)
FROM cpu_cycles_per_process_in_interval($ts, $dur) AS c
JOIN process USING (upid);
