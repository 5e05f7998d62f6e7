-- CPU cycles and utilisation of the whole system.

INCLUDE PERFETTO MODULE linux.cpu.utilization.general;
INCLUDE PERFETTO MODULE linux.cpu.utilization.thread_cpu;

-- Utilisation in pieces of a given length.
CREATE PERFETTO FUNCTION cpu_utilization_per_period(
  -- Length of a piece.
  interval LONG
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
  (SELECT ts, ts_end FROM sched WHERE utid NOT IN (SELECT utid FROM thread WHERE is_idle))
);

-- Utilisation second by second.
CREATE PERFETTO TABLE cpu_utilization_per_second(
  -- Start of the piece.
  ts TIMESTAMP,
  -- Part of the time of all CPUs, 0 to 1.
  utilization DOUBLE,
  -- The same counted in CPUs.
  unnormalized_utilization DOUBLE
) AS
SELECT ts, utilization, unnormalized_utilization
FROM cpu_utilization_per_period(1000000000);

-- Cycles of all CPUs over the whole trace.
CREATE PERFETTO TABLE cpu_cycles(
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
  _cpu_cycles_sums!()
FROM cpu_cycles_per_thread_per_cpu;

-- Cycles of all CPUs in a window.
CREATE PERFETTO FUNCTION cpu_cycles_in_interval(
  -- Start of the window.
  ts TIMESTAMP,
  -- Duration of the window in nanoseconds.
  dur LONG
)
RETURNS TABLE(
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
SELECT millicycles, megacycles, runtime, awake_runtime, min_freq, max_freq, avg_freq
FROM (
  SELECT
    _cpu_cycles_columns!(f.dur, f.freq),
    sum(_awake_time!(f.ts, f.dur)) AS awake_runtime
  FROM _cpu_freq_in_window!($ts, $dur) AS f
);

-- Utilisation of all CPUs in a window.
CREATE PERFETTO FUNCTION cpu_utilization_in_interval(
  -- Start of the window.
  ts TIMESTAMP,
  -- Duration of the window in nanoseconds.
  dur LONG
)
RETURNS TABLE(
  -- Time on CPUs.
  awake_dur LONG,
  -- Part of the time of all CPUs, 0 to 1.
  awake_utilization DOUBLE,
  -- The same counted in CPUs.
  awake_unnormalized_utilization DOUBLE
) AS
SELECT
  _cpu_utilization_columns!(c.awake_runtime, $ts, $dur, 2)
FROM cpu_cycles_in_interval($ts, $dur) AS c;

-- Cycles of each CPU over the whole trace.
CREATE PERFETTO TABLE cpu_cycles_per_cpu(
  -- Number of the CPU among all machines.
  ucpu JOINID(cpu.id),
  -- Number of the CPU on its machine.
  cpu LONG,
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
  ucpu,
  cpu,
  _cpu_cycles_sums!()
FROM cpu_cycles_per_thread_per_cpu
GROUP BY ucpu, cpu;

-- Cycles of each CPU in a window.
CREATE PERFETTO FUNCTION cpu_cycles_per_cpu_in_interval(
  -- Start of the window.
  ts TIMESTAMP,
  -- Duration of the window in nanoseconds.
  dur LONG
)
RETURNS TABLE(
  -- Number of the CPU among all machines.
  ucpu JOINID(cpu.id),
  -- Number of the CPU on its machine.
  cpu LONG,
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
  c.ucpu,
  cpu.cpu,
  _cpu_cycles_columns!(c.dur, c.freq)
FROM _cpu_freq_in_window!($ts, $dur) AS c
JOIN cpu USING (ucpu)
GROUP BY c.ucpu;
