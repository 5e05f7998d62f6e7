-- CPU time of users (uids).

-- Counters of CPU time, one row for each uid and cluster.
CREATE PERFETTO TABLE android_cpu_per_uid_track(
  -- Row of track.
  id LONG,
  -- The user id it counts for.
  uid LONG,
  -- Number of the cluster.
  cluster LONG,
  -- CPU time over the trace, in milliseconds.
  total_cpu_millis LONG,
  -- The application's package.
  package_name STRING
) AS
SELECT
  t.id,
  extract_arg(t.dimension_arg_set_id, 'uid') AS uid,
  extract_arg(t.dimension_arg_set_id, 'cluster') AS cluster,
  CAST((SELECT max(c.value) - min(c.value) FROM counter AS c WHERE c.track_id = t.id) AS INT) AS total_cpu_millis,
  (
    SELECT p.package_name
    FROM package_list AS p
    WHERE p.uid = extract_arg(t.dimension_arg_set_id, 'uid') % 100000
    LIMIT 1
  ) AS package_name
FROM track AS t
WHERE t.type = 'android_cpu_per_uid';

-- CPU time between samples.
CREATE PERFETTO VIEW android_cpu_per_uid_counter(
  -- Row of counter.
  id LONG,
  -- When the span between the samples began.
  ts LONG,
  -- Duration of the span between the samples in nanoseconds.
  dur LONG,
  -- Row of track.
  track_id LONG,
  -- CPU time until the next sample, in milliseconds.
  diff_ms LONG,
  -- CPU time by time: 1 is one processor kept busy.
  cpu_ratio DOUBLE
) AS
SELECT
  c.id,
  c.ts,
  lead(c.ts) OVER one - c.ts AS dur,
  c.track_id,
  CAST(lead(c.value) OVER one - c.value AS INT) AS diff_ms,
  (lead(c.value) OVER one - c.value) * 1000000.0 / (lead(c.ts) OVER one - c.ts) AS cpu_ratio
FROM counter AS c
JOIN android_cpu_per_uid_track AS t ON t.id = c.track_id
WINDOW one AS (PARTITION BY c.track_id ORDER BY c.ts);
