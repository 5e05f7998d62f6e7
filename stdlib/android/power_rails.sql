-- Energy that rails of a phone delivered.

INCLUDE PERFETTO MODULE counters.intervals;

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

-- Energy between samples; the last one reaches to the end of the trace.
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
  -- Energy since boot at the end, in microwatt seconds; NULL behind the last sample, as the power is.
  energy_since_boot_at_end DOUBLE,
  -- Average power in milliwatts.
  average_power DOUBLE,
  -- Energy since the span before, in microwatt seconds; NULL for the first one.
  energy_delta DOUBLE,
  -- Row of track.
  track_id JOINID(track.id),
  -- The same as energy_since_boot.
  value DOUBLE
) AS
SELECT
  i.id,
  i.ts,
  i.dur,
  m.power_rail_name,
  m.raw_power_rail_name,
  i.value AS energy_since_boot,
  i.next_value AS energy_since_boot_at_end,
  1e6 * ((i.next_value - i.value) / i.dur) AS average_power,
  i.delta_value AS energy_delta,
  i.track_id,
  i.value
FROM counter_leading_intervals!((
  SELECT id, ts, track_id, value FROM counter WHERE track_id IN (SELECT track_id FROM android_power_rails_metadata)
)) AS i
JOIN android_power_rails_metadata AS m ON m.track_id = i.track_id;
