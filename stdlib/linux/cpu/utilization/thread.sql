-- CPU cycles and utilisation of threads.

INCLUDE PERFETTO MODULE linux.cpu.utilization.general;
INCLUDE PERFETTO MODULE linux.cpu.utilization.thread_cpu;

-- Utilisation by one thread in pieces of a given length.
CREATE PERFETTO FUNCTION cpu_thread_utilization_per_period(
  -- Length of a piece.
  interval LONG,
  -- Row of thread.
  utid JOINID(thread.id)
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
  (SELECT ts, ts_end, utid FROM sched WHERE utid = $utid)
);

-- Utilisation by one thread second by second.
CREATE PERFETTO FUNCTION cpu_thread_utilization_per_second(
  -- Row of thread.
  utid JOINID(thread.id)
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
FROM cpu_thread_utilization_per_period(1000000000, $utid);

-- Cycles of each thread over the whole trace.
CREATE PERFETTO TABLE cpu_cycles_per_thread(
  -- Row of thread.
  utid JOINID(thread.id),
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
  utid,
  _cpu_cycles_sums!()
FROM cpu_cycles_per_thread_per_cpu
GROUP BY utid;

-- Cycles of each thread in a window.
CREATE PERFETTO FUNCTION cpu_cycles_per_thread_in_interval(
  -- Start of the window.
  ts TIMESTAMP,
  -- Duration of the window in nanoseconds.
  dur LONG
)
RETURNS TABLE(
  -- Row of thread.
  utid JOINID(thread.id),
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
SELECT utid, millicycles, megacycles, runtime, awake_runtime, min_freq, max_freq, avg_freq
FROM (
  SELECT
    f.utid,
    _cpu_cycles_columns!(f.dur, f.freq),
    sum(_awake_time!(f.ts, f.dur)) AS awake_runtime
  FROM _cpu_freq_in_window!($ts, $dur) AS f
  GROUP BY f.utid
);

-- Utilisation by each thread in a window.
CREATE PERFETTO FUNCTION cpu_thread_utilization_in_interval(
  -- Start of the window.
  ts TIMESTAMP,
  -- Duration of the window in nanoseconds.
  dur LONG
)
RETURNS TABLE(
  -- Row of process.
  upid JOINID(process.id),
  -- Row of thread.
  utid JOINID(thread.id),
  -- Name of the thread.
  thread_name STRING,
  -- Time on CPUs.
  awake_dur LONG,
  -- Part of the time of all CPUs, 0 to 1.
  awake_utilization DOUBLE,
  -- The same counted in CPUs.
  awake_unnormalized_utilization DOUBLE
) AS
SELECT
  thread.upid,
  c.utid,
  thread.name AS thread_name,
  _cpu_utilization_columns!(c.awake_runtime, $ts, $dur, 6)
FROM cpu_cycles_per_thread_in_interval($ts, $dur) AS c
JOIN thread USING (utid);
