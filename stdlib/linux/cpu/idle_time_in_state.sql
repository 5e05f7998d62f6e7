-- Idle residency as the kernel counts it (/sys/devices/system/cpu/cpu*/cpuidle).

CREATE PERFETTO VIEW _cpuidle_samples AS
SELECT
  c.ts,
  t.machine_id,
  extract_arg(t.dimension_arg_set_id, 'state') AS state,
  extract_arg(t.dimension_arg_set_id, 'cpu') AS cpu,
  -- counted in microseconds
  c.value * 1000 - lag(c.value * 1000) OVER one AS residency,
  c.value AS total_residency,
  c.ts - lag(c.ts) OVER one AS time_slice
FROM counter AS c
JOIN counter_track AS t ON t.id = c.track_id
WHERE t.type = 'cpu_idle_state'
WINDOW one AS (PARTITION BY c.track_id ORDER BY c.ts);

-- Residency of each CPU in each state, between samples. The state C0 is the time that is left.
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
  -- Counted since the machine started, in microseconds.
  total_residency DOUBLE,
  -- Time since the sample before.
  time_slice LONG
) AS
SELECT
  ts,
  machine_id,
  state,
  cpu,
  min(residency * 100.0 / time_slice, 100.0) AS idle_percentage,
  total_residency,
  time_slice
FROM _cpuidle_samples
WHERE time_slice > 0
UNION ALL
SELECT
  ts,
  machine_id,
  'C0' AS state,
  cpu,
  max(100.0 - sum(residency) * 100.0 / time_slice, 0.0) AS idle_percentage,
  max(time_slice - sum(residency), 0) / 1000.0 AS total_residency,
  time_slice
FROM _cpuidle_samples
WHERE time_slice > 0
GROUP BY ts, machine_id, cpu, time_slice
ORDER BY ts;

-- The same over all CPUs of a machine.
CREATE PERFETTO TABLE linux_cpu_idle_time_in_state_counters(
  -- Time of the sample.
  ts TIMESTAMP,
  -- Row of machine.
  machine_id JOINID(machine.id),
  -- Name of the state.
  state STRING,
  -- Part of the time since the sample before, in per cent.
  idle_percentage DOUBLE,
  -- Counted since the machine started, in microseconds, all CPUs together.
  total_residency DOUBLE,
  -- Time since the sample before.
  time_slice LONG
) AS
SELECT
  ts,
  machine_id,
  state,
  avg(idle_percentage) AS idle_percentage,
  sum(total_residency) AS total_residency,
  time_slice
FROM linux_per_cpu_idle_time_in_state_counters
GROUP BY ts, machine_id, state, time_slice
ORDER BY ts;
