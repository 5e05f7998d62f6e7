-- Energy that rails of a phone delivered.

-- The rails and what they feed.
CREATE PERFETTO TABLE android_power_rails_metadata(
  -- Name of the rail's track.
  power_rail_name STRING,
  -- Name of the rail as the hardware has it.
  raw_power_rail_name STRING,
  -- Name of the rail without its prefix.
  friendly_name STRING,
  -- Row of track.
  track_id JOINID(track.id),
  -- The part that the rail feeds.
  subsystem_name STRING,
  -- Row of machine.
  machine_id JOINID(machine.id)
) AS
SELECT
  t.name AS power_rail_name,
  extract_arg(t.source_arg_set_id, 'raw_name') AS raw_power_rail_name,
  iif(t.name GLOB 'power.rails.*', substr(t.name, length('power.rails.') + 1), NULL) AS friendly_name,
  t.id AS track_id,
  extract_arg(t.source_arg_set_id, 'subsystem_name') AS subsystem_name,
  t.machine_id
FROM counter_track AS t
WHERE t.type = 'power_rails';

-- Energy between samples.
CREATE PERFETTO TABLE android_power_rails_counters(
  -- Row of counter.
  id ID(counter.id),
  -- When the span between the samples began.
  ts TIMESTAMP,
  -- Duration of the span between the samples in nanoseconds.
  dur DURATION,
  -- Name of the rail's track.
  power_rail_name STRING,
  -- Name of the rail as the hardware has it.
  raw_power_rail_name STRING,
  -- Energy since boot at the start, in microwatt seconds.
  energy_since_boot DOUBLE,
  -- Energy since boot at the end, in microwatt seconds.
  energy_since_boot_at_end DOUBLE,
  -- Average power in milliwatts.
  average_power DOUBLE,
  -- Energy between the two, in microwatt seconds.
  energy_delta DOUBLE,
  -- Row of track.
  track_id JOINID(track.id),
  -- The same as energy_since_boot.
  value DOUBLE
) AS
SELECT
  c.id,
  c.ts,
  lead(c.ts) OVER one - c.ts AS dur,
  m.power_rail_name,
  m.raw_power_rail_name,
  c.value AS energy_since_boot,
  lead(c.value) OVER one AS energy_since_boot_at_end,
  (lead(c.value) OVER one - c.value) * 1e6 / (lead(c.ts) OVER one - c.ts) AS average_power,
  lead(c.value) OVER one - c.value AS energy_delta,
  c.track_id,
  c.value
FROM counter AS c
JOIN android_power_rails_metadata AS m ON m.track_id = c.track_id
WINDOW one AS (PARTITION BY c.track_id ORDER BY c.ts);
