-- Idle residency as the kernel counts it (/sys/devices/system/cpu/cpu*/cpuidle).

-- What each state was given between two samples, in microseconds, as the kernel counts.
CREATE PERFETTO VIEW _cpuidle_samples AS
SELECT
  c.ts,
  t.machine_id,
  extract_arg(t.dimension_arg_set_id, 'state') AS state,
  extract_arg(t.dimension_arg_set_id, 'cpu') AS cpu,
  c.value - lag(c.value) OVER one AS residency,
  (c.ts - lag(c.ts) OVER one) / 1000 AS time_slice
FROM counter AS c
JOIN counter_track AS t ON t.id = c.track_id
WHERE t.type = 'cpu_idle_state'
WINDOW one AS (PARTITION BY c.track_id ORDER BY c.ts);

-- Residency of each CPU in each state, between samples. The state C0 is the time that is left; its rows come last.
CREATE PERFETTO TABLE linux_per_cpu_idle_time_in_state_counters(
  -- Time of the sample.
  ts TIMESTAMP,
  -- Row of machine.
  machine_id JOINID(machine.id),
  -- Name of the state.
  state STRING,
  -- Number of the CPU.
  cpu LONG,
  -- Part of the time since the sample before, in per cent.
  idle_percentage DOUBLE,
  -- Time in the state since the sample before, in microseconds.
  total_residency DOUBLE,
  -- Time since the sample before, in microseconds.
  time_slice LONG
) AS
WITH
  rest AS (
    SELECT ts, machine_id, cpu, time_slice - sum(residency) AS residency, time_slice
    FROM _cpuidle_samples
    WHERE time_slice IS NOT NULL
    GROUP BY ts, machine_id, cpu
  )
SELECT
  ts,
  machine_id,
  state,
  cpu,
  min(100, residency / time_slice * 100) AS idle_percentage,
  residency AS total_residency,
  time_slice
FROM _cpuidle_samples
WHERE time_slice IS NOT NULL
UNION ALL
SELECT ts, machine_id, 'C0' AS state, cpu, max(0, residency / time_slice * 100), max(0, residency), time_slice
FROM rest;

-- The same over all CPUs of a machine: sums, and their ratio.
CREATE PERFETTO TABLE linux_cpu_idle_time_in_state_counters(
  -- Time of the sample.
  ts TIMESTAMP,
  -- Row of machine.
  machine_id JOINID(machine.id),
  -- Name of the state.
  state STRING,
  -- Part of the time since the sample before, in per cent.
  idle_percentage DOUBLE,
  -- Time in the state since the sample before, in microseconds, all CPUs together.
  total_residency DOUBLE,
  -- Time since the sample before, in microseconds, all CPUs together.
  time_slice LONG
) AS
SELECT
  ts,
  machine_id,
  state,
  min(100, sum(total_residency) / sum(time_slice) * 100) AS idle_percentage,
  sum(total_residency) AS total_residency,
  sum(time_slice) AS time_slice
FROM linux_per_cpu_idle_time_in_state_counters
GROUP BY ts, state, machine_id;
