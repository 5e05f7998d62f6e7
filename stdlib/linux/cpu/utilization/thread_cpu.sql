-- CPU cycles of threads, apart by CPU.

INCLUDE PERFETTO MODULE linux.cpu.utilization.general;

-- Cycles of each thread on each CPU over the whole trace.
CREATE PERFETTO TABLE cpu_cycles_per_thread_per_cpu(
  -- Row of thread.
  utid JOINID(thread.id),
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
  c.utid,
  c.ucpu,
  cpu.cpu,
  sum(c.dur * c.freq / 1000) AS millicycles,
  sum(c.dur * c.freq / 1000) / 1000000000 AS megacycles,
  sum(c.dur) AS runtime,
  min(c.freq) AS min_freq,
  max(c.freq) AS max_freq,
  sum(c.dur * c.freq / 1000) / (sum(c.dur) / 1000) AS avg_freq
FROM _cpu_freq_per_thread AS c
JOIN cpu USING (ucpu)
GROUP BY c.utid, c.ucpu;

-- Cycles of each thread on each CPU in a window.
CREATE PERFETTO FUNCTION cpu_cycles_per_thread_per_cpu_in_interval(
  -- Start of the window.
  ts TIMESTAMP,
  -- Duration of the window in nanoseconds.
  dur LONG
)
RETURNS TABLE(
  -- Row of thread.
  utid JOINID(thread.id),
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
  c.utid,
  c.ucpu,
  cpu.cpu,
  _cpu_cycles_columns!(c.dur, c.freq)
FROM _cpu_freq_in_window!($ts, $dur) AS c
JOIN cpu USING (ucpu)
GROUP BY c.utid, c.ucpu;
