-- How well the clocks of the machines are known.

INCLUDE PERFETTO MODULE clocks.snapshots;

-- One row for each machine and clock.
CREATE PERFETTO TABLE clock_quality(
  -- Row of machine.
  machine_id JOINID(machine.id),
  -- Number of the clock.
  clock_id LONG,
  -- Name of the clock.
  clock_name STRING,
  -- How often it was read.
  snapshot_count LONG,
  -- From the first reading to the last.
  covered_dur DURATION,
  -- The longest time between two readings.
  longest_gap_dur DURATION,
  -- How far its distance from BOOTTIME moved, from the smallest to the largest.
  offset_range_ns LONG,
  -- The largest change between two readings: what a time between them may be wrong by.
  worst_step_ns LONG
) AS
SELECT
  machine_id,
  clock_id,
  clock_name,
  count() AS snapshot_count,
  max(ts) - min(ts) AS covered_dur,
  max(gap) AS longest_gap_dur,
  max(offset_ns) - min(offset_ns) AS offset_range_ns,
  max(abs(offset_change_ns)) AS worst_step_ns
FROM (
  SELECT *, ts - lag(ts) OVER (PARTITION BY machine_id, clock_id ORDER BY ts) AS gap
  FROM clock_offsets
)
GROUP BY machine_id, clock_id
ORDER BY machine_id, clock_id;

-- What the importer found out about clocks that it could not bring together.
CREATE PERFETTO VIEW clock_problems(
  -- Name of the statistic.
  name STRING,
  -- Index of the stat.
  idx LONG,
  -- Row of machine.
  machine_id JOINID(machine.id),
  -- How often.
  value LONG,
  -- What it means.
  description STRING
) AS
SELECT name, idx, machine_id, value, description
FROM stats
WHERE name GLOB 'clock_sync*' AND value > 0;
