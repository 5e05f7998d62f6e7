-- Frequencies of devices other than CPUs.

INCLUDE PERFETTO MODULE counters.intervals;

-- The spans in which a device's frequency stayed the same.
CREATE PERFETTO FUNCTION _get_devfreq_counters(
  -- Part of the device's name.
  device_name STRING
)
RETURNS TABLE(
  id LONG,
  ts TIMESTAMP,
  dur DURATION,
  freq LONG
) AS
SELECT i.id, i.ts, i.dur, CAST(i.value AS INT) AS freq
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, c.track_id, c.value
  FROM counter AS c
  JOIN counter_track AS t ON t.id = c.track_id
  WHERE t.type = 'linux_device_frequency' AND extract_arg(t.dimension_arg_set_id, 'linux_device') GLOB $device_name
)) AS i;

-- Frequency of the unit that CPUs of a cluster share (DSU).
CREATE PERFETTO TABLE linux_devfreq_dsu_counter(
  -- Row of counter.
  id LONG,
  -- When the frequency began.
  ts TIMESTAMP,
  -- Duration of the frequency in nanoseconds.
  dur DURATION,
  -- Frequency in kHz.
  dsu_freq LONG
) AS
SELECT id, ts, dur, freq AS dsu_freq
FROM _get_devfreq_counters('*devfreq_dsu')
UNION ALL
SELECT id, ts, dur, freq
FROM _get_devfreq_counters('*dsufreq');
