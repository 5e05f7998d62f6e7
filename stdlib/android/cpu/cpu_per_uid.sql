-- CPU time of users (uids).

INCLUDE PERFETTO MODULE android.package_lookup;
INCLUDE PERFETTO MODULE counters.intervals;

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
SELECT id, ts, dur, track_id, next_value - value AS diff_ms, (next_value - value) * 1e6 / dur AS cpu_ratio
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, c.track_id, c.value
  FROM counter AS c
  JOIN android_cpu_per_uid_track AS t ON t.id = c.track_id
))
WHERE next_value IS NOT NULL;
