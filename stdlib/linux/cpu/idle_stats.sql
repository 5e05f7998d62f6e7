-- Idle states of CPUs, added up.

INCLUDE PERFETTO MODULE linux.cpu.idle;

-- How often and how long each CPU was in each idle state.
CREATE PERFETTO TABLE cpu_idle_stats(
  -- CPU.
  cpu LONG,
  -- State: 0 the lightest; -1 awake.
  state LONG,
  -- How often it was entered.
  count LONG,
  -- Time in it.
  dur DURATION,
  -- Time in it at once, on average.
  avg_dur DURATION,
  -- Its part of the CPU's time, in per cent.
  idle_percent DOUBLE
) AS
SELECT
  cpu,
  idle AS state,
  count() AS count,
  sum(dur) AS dur,
  sum(dur) / count() AS avg_dur,
  sum(dur) * 100.0 / sum(sum(dur)) OVER (PARTITION BY cpu) AS idle_percent
FROM cpu_idle_counters
GROUP BY cpu, idle
ORDER BY cpu, idle;
