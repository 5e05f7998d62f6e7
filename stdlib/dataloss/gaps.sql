-- When events are missing: the time in which a CPU, though it ran before and after, has no event at all.

-- Stretches of at least 100 ms without a scheduler event on a CPU that is never quiet that long otherwise; a CPU that sleeps
-- has a running span of its idle thread instead.
CREATE PERFETTO TABLE dataloss_sched_gaps(
  -- Start: the end of the last span before.
  ts TIMESTAMP,
  -- Duration of the gap in nanoseconds.
  dur DURATION,
  -- Number of the CPU among all machines.
  ucpu LONG,
  -- Row of machine.
  machine_id JOINID(machine.id)
) AS
SELECT ts, dur, ucpu, _machine_of_ucpu!(ucpu) AS machine_id
FROM (
  SELECT
    ts + dur AS ts,
    lead(ts) OVER (PARTITION BY ucpu ORDER BY ts) - (ts + dur) AS dur,
    ucpu
  FROM sched
  WHERE dur >= 0
)
WHERE dur > 0
ORDER BY dur DESC;

-- The same added up by CPU.
CREATE PERFETTO TABLE dataloss_sched_gaps_by_cpu(
  -- Number of the CPU among all machines.
  ucpu LONG,
  -- How many gaps.
  gap_count LONG,
  -- All of them together.
  gap_dur DURATION,
  -- The longest.
  longest_dur DURATION,
  -- Their part of the trace, 0 to 1.
  gap_ratio DOUBLE
) AS
SELECT
  ucpu,
  count() AS gap_count,
  sum(dur) AS gap_dur,
  max(dur) AS longest_dur,
  sum(dur) * 1.0 / max(trace_dur(), 1) AS gap_ratio
FROM dataloss_sched_gaps
GROUP BY ucpu
ORDER BY ucpu;
