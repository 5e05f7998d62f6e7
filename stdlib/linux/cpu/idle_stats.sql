-- Idle states of CPUs, added up.

INCLUDE PERFETTO MODULE linux.cpu.idle;

-- How often and how long each CPU was in each idle state.
CREATE PERFETTO TABLE cpu_idle_stats(
  -- CPU, by its number among all machines (ucpu).
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
SELECT cpu, idle + 1 AS state, count, dur, dur / count AS avg_dur, dur * 100.0 / cpu_dur AS idle_percent
FROM (
  SELECT
    _ucpu!(t.machine_id, c.cpu) AS cpu,
    c.idle,
    count() AS count,
    sum(c.dur) AS dur,
    sum(sum(c.dur)) OVER (PARTITION BY t.machine_id, c.cpu) AS cpu_dur
  FROM cpu_idle_counters AS c
  JOIN track AS t ON t.id = c.track_id
  GROUP BY t.machine_id, c.cpu, c.idle
)
WHERE idle >= 0
ORDER BY 1, 2;
