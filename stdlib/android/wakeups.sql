-- What woke a phone up, or kept it from falling asleep.

INCLUDE PERFETTO MODULE android.suspend;

-- One row a cause. A wakeup counts for as long as the phone then stayed awake, five seconds at most; when it keeps
-- failing to fall asleep, for the time it waits until it tries again.
CREATE PERFETTO TABLE android_wakeups(
  -- When the device woke.
  ts TIMESTAMP,
  -- How long it can be held for awake: until it slept again, 5 s at most where no wait is told.
  dur DURATION,
  -- The reason as it was reported.
  raw_wakeup STRING,
  -- Who the device itself says it was for.
  on_device_attribution STRING,
  -- normal, or how going to sleep was aborted.
  type STRING,
  -- One cause of it.
  item STRING,
  -- Was the sleep before it good or bad?
  suspend_quality STRING,
  -- Does the kernel wait longer before it sleeps again?
  backoff_state STRING,
  -- Why it waits.
  backoff_reason STRING,
  -- How often in a row.
  backoff_count LONG,
  -- How long it waits, in milliseconds.
  backoff_millis LONG
) AS
WITH
  reports AS (
    SELECT
      s.ts,
      extract_arg(s.arg_set_id, 'wakelock_wakeup.reason') AS arg_reason,
      s.name,
      extract_arg(s.arg_set_id, 'wakelock_wakeup.attribution') AS attribution
    FROM slice AS s
    JOIN track AS t ON t.id = s.track_id
    WHERE t.name = 'wakeup_reason'
  ),
  texts AS (SELECT ts, coalesce(arg_reason, name) AS raw_wakeup, attribution FROM reports),
  backoffs AS (
    SELECT
      s.ts,
      regexp_extract(s.name, '^([a-z]+)') AS quality,
      regexp_extract(s.name, 'state=([a-z]+)') AS state,
      regexp_extract(s.name, 'reason=([a-z_]+)') AS reason,
      cast_int!(regexp_extract(s.name, 'count=([0-9]+)')) AS n,
      cast_int!(regexp_extract(s.name, 'millis=([0-9]+)')) AS millis
    FROM slice AS s
    JOIN track AS t ON t.id = s.track_id
    WHERE t.name = 'suspend_backoff'
  ),
  placed AS (
    SELECT
      x.*,
      CASE
        WHEN x.raw_wakeup GLOB 'Abort: Pending Wakeup Sources: *' THEN 'abort_pending'
        WHEN x.raw_wakeup GLOB 'Abort: Last active Wakeup Source: *' THEN 'abort_last_active'
        WHEN x.raw_wakeup GLOB 'Abort: *' THEN 'abort_other'
        ELSE 'normal'
      END AS type,
      (
        SELECT min(s.ts) FROM android_suspend_state AS s WHERE s.power_state = 'suspended' AND s.ts > x.ts
      ) AS next_sleep,
      b.quality,
      b.state,
      b.reason,
      b.n,
      b.millis
    FROM texts AS x
    LEFT JOIN backoffs AS b ON b.ts BETWEEN x.ts AND x.ts + 5000000
  ),
  -- causes as a JSON array: pending sources are apart by blanks, others by colons
  listed AS (
    SELECT
      *,
      CASE type
        WHEN 'abort_pending' THEN '["' || replace(trim(substr(raw_wakeup, 32)), ' ', '","') || '"]'
        WHEN 'abort_last_active' THEN json_array(substr(raw_wakeup, 35))
        WHEN 'abort_other' THEN json_array(substr(raw_wakeup, 8))
        ELSE '["' || replace(raw_wakeup, ':', '","') || '"]'
      END AS causes
    FROM placed
  )
SELECT
  l.ts,
  CAST(min(coalesce(l.millis * 1000000, 5000000000), coalesce(l.next_sleep, trace_end()) - l.ts) AS INT) AS dur,
  l.raw_wakeup,
  l.attribution AS on_device_attribution,
  l.type,
  trim(j.value) AS item,
  l.quality AS suspend_quality,
  l.state AS backoff_state,
  l.reason AS backoff_reason,
  l.n AS backoff_count,
  l.millis AS backoff_millis
FROM listed AS l
JOIN json_each(iif(json_valid(l.causes), l.causes, json_array(l.raw_wakeup))) AS j
WHERE l.raw_wakeup IS NOT NULL;
