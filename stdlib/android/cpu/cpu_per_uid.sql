-- CPU time of users (uids).

INCLUDE PERFETTO MODULE android.package_lookup;

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
  -- The application's package, or what else the number stands for.
  package_name STRING
) AS
SELECT track_id AS id, uid, cluster, total_cpu_millis, android_package_lookup(uid) AS package_name
FROM __intrinsic_android_cpu_per_uid_track;

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
