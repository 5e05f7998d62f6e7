-- Clocks of the machines as they were read together.

-- Each snapshot of a clock next to BOOTTIME of its machine: how far they are apart, and how much that changed.
CREATE PERFETTO TABLE clock_offsets(
  -- Time of the snapshot, on the trace's clock.
  ts TIMESTAMP,
  -- Row of machine.
  machine_id JOINID(machine.id),
  -- Number of the snapshot.
  snapshot_id LONG,
  -- Number of the clock.
  clock_id LONG,
  -- Name of the clock.
  clock_name STRING,
  -- Its value.
  clock_value LONG,
  -- Its value minus BOOTTIME's.
  offset_ns LONG,
  -- The same minus that of the machine's snapshot before.
  offset_change_ns LONG,
  -- The change per second, in billionths: how much faster the clock runs than BOOTTIME.
  drift_ppb DOUBLE
) AS
SELECT
  c.ts,
  c.machine_id,
  c.snapshot_id,
  c.clock_id,
  c.clock_name,
  c.clock_value,
  c.clock_value - b.clock_value AS offset_ns,
  c.clock_value - b.clock_value - lag(c.clock_value - b.clock_value) OVER one AS offset_change_ns,
  (c.clock_value - b.clock_value - lag(c.clock_value - b.clock_value) OVER one) * 1e9
  / nullif(b.clock_value - lag(b.clock_value) OVER one, 0) AS drift_ppb
FROM clock_snapshot AS c
JOIN clock_snapshot AS b
  ON b.snapshot_id = c.snapshot_id AND b.machine_id = c.machine_id AND b.clock_id = 6
WHERE c.clock_id != 6
WINDOW one AS (PARTITION BY c.machine_id, c.clock_id ORDER BY c.ts, c.snapshot_id)
ORDER BY c.ts, c.machine_id, c.clock_id;
