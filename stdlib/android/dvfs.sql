-- Frequencies of what is neither CPU nor GPU: buses, memory, caches.

INCLUDE PERFETTO MODULE counters.intervals;

-- Their spans.
CREATE PERFETTO VIEW android_dvfs_counters(
  -- Name of the counter.
  name STRING,
  -- When the value began.
  ts TIMESTAMP,
  -- Value of the counter.
  value DOUBLE,
  -- Duration of the value in nanoseconds.
  dur DURATION
) AS
SELECT t.name, i.ts, i.value, i.dur
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, c.track_id, c.value
  FROM counter AS c
  JOIN counter_track AS t ON t.id = c.track_id
  WHERE t.name GLOB 'domain@* Frequency' OR t.name GLOB '1700*devfreq_* Frequency' OR t.name GLOB 'cpu[0-9]dsu Frequency'
    OR t.name GLOB 'dsu_throughput*' OR t.name GLOB 'bus_throughput*' OR t.name GLOB 'gs_memlat_devfreq:*'
)) AS i
JOIN counter_track AS t ON t.id = i.track_id;

-- Bounds and average of each.
CREATE PERFETTO TABLE android_dvfs_counter_stats(
  -- Name of the counter.
  name STRING,
  -- Highest value.
  max DOUBLE,
  -- Lowest value.
  min DOUBLE,
  -- From the start of its first span to that of its last.
  dur DURATION,
  -- Average, weighted by time.
  wgt_avg DOUBLE
) AS
SELECT
  name,
  max(value) AS max,
  min(value) AS min,
  max(ts) - min(ts) AS dur,
  sum(dur * value) / sum(dur) AS wgt_avg
FROM android_dvfs_counters
WHERE dur > 0
GROUP BY name;

-- How long each stood at each value.
CREATE PERFETTO VIEW android_dvfs_counter_residency(
  -- Name of the counter.
  name STRING,
  -- The frequency.
  value DOUBLE,
  -- Time at it.
  dur DURATION,
  -- Its percentage of all time.
  pct DOUBLE
) AS
SELECT name, value, dur, dur * 100.0 / sum(dur) OVER (PARTITION BY name) AS pct
FROM (SELECT name, value, sum(dur) AS dur FROM android_dvfs_counters WHERE dur > 0 GROUP BY name, value);
