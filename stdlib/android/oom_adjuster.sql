-- How ready Android was to end processes for their memory.

INCLUDE PERFETTO MODULE counters.intervals;
INCLUDE PERFETTO MODULE slices.with_context;

-- The group that a score belongs to.
CREATE PERFETTO FUNCTION android_oom_adj_score_to_bucket_name(
  -- Readiness to be ended: -1000 never, 1000 first.
  oom_score LONG
)
-- Name of the group.
RETURNS STRING AS
SELECT
  CASE
    WHEN $oom_score < 0 THEN 'system'
    WHEN $oom_score < 100 THEN 'foreground'
    WHEN $oom_score < 200 THEN 'bfgs'
    WHEN $oom_score = 200 THEN 'foreground_service'
    WHEN $oom_score < 250 THEN 'job'
    WHEN $oom_score < 900 THEN 'background'
    WHEN $oom_score >= 900 THEN 'cached'
  END;

-- The same in more groups. Scores that belong to none are told apart by the number of the application.
CREATE PERFETTO FUNCTION android_oom_adj_score_to_detailed_bucket_name(
  -- Score of the process.
  value LONG,
  -- Number of the application, without the user's part.
  android_appid LONG
)
-- Name of the group.
RETURNS STRING AS
WITH
  groups(first, last, name) AS (
    VALUES
      (-1000, -1000, 'native'),
      (-900, -900, 'system'),
      (-800, -800, 'persistent_proc'),
      (-700, -700, 'persistent_service'),
      (-600, -600, 'logcat'),
      (0, 0, 'foreground_app'),
      (50, 50, 'perceptible_foreground_app'),
      (100, 199, 'visible_app'),
      (200, 224, 'perceptible_app'),
      (225, 249, 'perceptible_medium_app'),
      (250, 299, 'perceptible_low_app'),
      (300, 399, 'backup'),
      (400, 499, 'heavy_weight_app'),
      (500, 599, 'service'),
      (600, 699, 'home_app'),
      (700, 799, 'previous_app'),
      (800, 899, 'service_b'),
      (900, 949, 'cached_app'),
      (950, 9223372036854775807, 'cached_app_lmk_first')
  )
SELECT
  coalesce(
    (SELECT name FROM groups WHERE $value BETWEEN first AND last),
    CASE WHEN $android_appid IS NULL THEN 'unknown' WHEN $android_appid < 10000 THEN 'unknown_native' ELSE 'unknown_app' END
  );

CREATE PERFETTO TABLE _oom_adjuster_intervals AS
SELECT i.ts, i.dur, CAST(i.value AS INT) AS score, t.upid
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, c.track_id, c.value
  FROM counter AS c
  JOIN track AS t ON t.id = c.track_id
  WHERE t.type = 'oom_score_adj' OR t.name = 'oom_score_adj'
)) AS i
JOIN process_counter_track AS t ON t.id = i.track_id;

-- The slices in which the system server computes scores, and the slice around each: what asked for it.
CREATE PERFETTO TABLE _oom_adjuster_updates AS
SELECT
  s.id,
  s.ts,
  s.dur,
  s.track_id,
  s.thread_name,
  str_split(s.name, '_', 1) AS reason,
  around.name AS asked_by,
  p.machine_id
FROM thread_slice AS s
JOIN process AS p USING (upid)
LEFT JOIN slice AS around ON around.id = s.parent_id AND around.dur != -1
WHERE s.name GLOB 'updateOomAdj_*' AND s.process_name = 'system_server';

-- Of each score, the last of those slices that began before it.
CREATE PERFETTO TABLE _oom_adjuster_last_updates AS
WITH
  moments AS (
    SELECT ts, id AS update_id, NULL AS upid, machine_id FROM _oom_adjuster_updates
    UNION ALL
    SELECT i.ts, NULL, i.upid, p.machine_id
    FROM _oom_adjuster_intervals AS i
    JOIN process AS p USING (upid)
  ),
  matched AS (
    SELECT ts, upid, last_non_null(update_id) OVER (PARTITION BY machine_id ORDER BY ts) AS update_id
    FROM moments
  )
SELECT ts, upid, update_id
FROM matched
WHERE upid IS NOT NULL AND update_id IS NOT NULL;

-- The spans in which a process kept its score.
CREATE PERFETTO VIEW android_oom_adj_intervals(
  -- When the score began.
  ts TIMESTAMP,
  -- Duration of the score in nanoseconds.
  dur DURATION,
  -- Readiness to be ended: -1000 never, 1000 first.
  score LONG,
  -- How ready Android was to end the process, in words.
  bucket STRING,
  -- Row of process.
  upid JOINID(process.id),
  -- Name of the process.
  process_name STRING,
  -- The last slice before it in which the system server computed scores (updateOomAdj_…): row of slice; NULL: none.
  oom_adj_id LONG,
  -- Start of that slice; NULL: none.
  oom_adj_ts TIMESTAMP,
  -- Length of that slice; NULL: none.
  oom_adj_dur DURATION,
  -- Track of that slice; NULL: none.
  oom_adj_track_id JOINID(track.id),
  -- Thread of that slice; NULL: none.
  oom_adj_thread_name STRING,
  -- Why scores were computed, as that slice says; NULL: none.
  oom_adj_reason STRING,
  -- Name of the slice around it; NULL: none, or one that did not end.
  oom_adj_trigger STRING
) AS
SELECT
  i.ts,
  i.dur,
  i.score,
  android_oom_adj_score_to_bucket_name(i.score) AS bucket,
  i.upid,
  p.name AS process_name,
  u.id AS oom_adj_id,
  u.ts AS oom_adj_ts,
  u.dur AS oom_adj_dur,
  u.track_id AS oom_adj_track_id,
  u.thread_name AS oom_adj_thread_name,
  u.reason AS oom_adj_reason,
  u.asked_by AS oom_adj_trigger
FROM _oom_adjuster_intervals AS i
JOIN process AS p USING (upid)
LEFT JOIN _oom_adjuster_last_updates AS l ON l.upid = i.upid AND l.ts = i.ts
LEFT JOIN _oom_adjuster_updates AS u ON u.id = l.update_id;
