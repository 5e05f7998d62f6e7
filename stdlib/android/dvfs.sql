-- Frequencies of what is neither CPU nor GPU: buses, memory, caches.

-- The counters that are known to be of them.
CREATE PERFETTO TABLE _dvfs_counter_names AS
WITH
  places(n) AS (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8)),
  names(name) AS (
    VALUES
      ('17000010.devfreq_mif Frequency'),
      ('17000020.devfreq_int Frequency'),
      ('17000090.devfreq_dsu Frequency'),
      ('170000a0.devfreq_bci Frequency'),
      ('dsu_throughput Frequency'),
      ('bus_throughput Frequency')
  )
SELECT name FROM names
UNION ALL
SELECT 'domain@' || n || ' Frequency' FROM places WHERE n <= 2
UNION ALL
SELECT 'cpu' || n || 'dsu Frequency' FROM places
UNION ALL
SELECT 'gs_memlat_devfreq:devfreq_mif_cpu' || n || '_memlat@17000010 Frequency' FROM places;

-- Their samples, each up to the next one.
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
SELECT t.name, c.ts, c.value, lead(c.ts, 1, trace_end()) OVER (PARTITION BY t.id ORDER BY c.ts) - c.ts AS dur
FROM counter AS c
JOIN counter_track AS t ON t.id = c.track_id
WHERE t.name IN (SELECT name FROM _dvfs_counter_names)
ORDER BY c.ts;

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
FROM (SELECT name, value, sum(dur) AS dur FROM android_dvfs_counters WHERE dur > 0 GROUP BY name, value)
ORDER BY name, value;
