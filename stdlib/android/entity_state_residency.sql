-- How long parts of the hardware were in each power state.

-- Residency between samples.
CREATE PERFETTO TABLE android_entity_state_residency(
  -- Row of counter.
  id ID(counter.id),
  -- When the span between the samples began.
  ts TIMESTAMP,
  -- Duration of the span between the samples in nanoseconds.
  dur DURATION,
  -- The part of the hardware.
  entity_name STRING,
  -- Its state.
  state_name STRING,
  -- Name of the track.
  raw_name STRING,
  -- Time in the state since boot, at the start.
  state_time_since_boot DURATION,
  -- Time in the state since boot, at the end.
  state_time_since_boot_at_end DURATION,
  -- Part of the time that it was in the state: 0 to 1.
  state_time_ratio DOUBLE,
  -- Row of track.
  track_id JOINID(track.id)
) AS
SELECT
  c.id,
  c.ts,
  lead(c.ts) OVER one - c.ts AS dur,
  extract_arg(t.dimension_arg_set_id, 'entity_name') AS entity_name,
  extract_arg(t.dimension_arg_set_id, 'state_name') AS state_name,
  t.name AS raw_name,
  -- counted in milliseconds
  CAST(c.value * 1000000 AS INT) AS state_time_since_boot,
  CAST(lead(c.value) OVER one * 1000000 AS INT) AS state_time_since_boot_at_end,
  (lead(c.value) OVER one - c.value) * 1000000.0 / (lead(c.ts) OVER one - c.ts) AS state_time_ratio,
  c.track_id
FROM counter AS c
JOIN counter_track AS t ON t.id = c.track_id
WHERE t.type = 'entity_state'
WINDOW one AS (PARTITION BY c.track_id ORDER BY c.ts);
