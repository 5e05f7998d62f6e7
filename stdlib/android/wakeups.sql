-- What woke a phone up, or kept it from falling asleep.

INCLUDE PERFETTO MODULE android.suspend;

-- Instants "NUMBER TEXT" of a track, apart: (ts, number, text).
CREATE PERFETTO MACRO _numbered_instants(
  -- Name of the track.
  track_name Expr
)
RETURNS TableOrSubquery AS
(
  SELECT s.ts, substr(s.name, 1, instr(s.name, ' ') - 1) AS number, substr(s.name, instr(s.name, ' ') + 1) AS text
  FROM slice AS s
  JOIN track AS t ON t.id = s.track_id
  WHERE t.name = $track_name AND s.dur = 0
);

-- Reports of wakeups with what the device thought of the sleep before, told right before the report: "QUALITY STATE REASON COUNT
-- MILLIS". Whom the device blames is told later, with the report's number.
CREATE PERFETTO TABLE _wakeup_reports AS
WITH
  marks AS (
    SELECT r.ts, r.text AS raw_wakeup, a.text AS on_device_attribution, NULL AS backoff
    FROM _numbered_instants!('wakeup_reason') AS r
    LEFT JOIN _numbered_instants!('wakeup_attribution') AS a ON a.number = r.number
    UNION ALL
    SELECT s.ts, NULL, NULL, s.name
    FROM slice AS s
    JOIN track AS t ON t.id = s.track_id
    WHERE t.name = 'suspend_backoff' AND s.dur = 0
  ),
  told AS (SELECT ts, raw_wakeup, on_device_attribution, lag(backoff) OVER (ORDER BY ts) AS backoff FROM marks)
SELECT
  ts,
  raw_wakeup,
  on_device_attribution,
  str_split(backoff, ' ', 0) AS suspend_quality,
  str_split(backoff, ' ', 1) AS backoff_state,
  str_split(backoff, ' ', 2) AS backoff_reason,
  CAST(str_split(backoff, ' ', 3) AS INTEGER) AS backoff_count,
  CAST(str_split(backoff, ' ', 4) AS INTEGER) AS backoff_millis
FROM told
WHERE raw_wakeup IS NOT NULL;

-- The same with how long each counts: after a good sleep up to the next report or the next sleep, five seconds at most; after a bad
-- one for the time that the phone waits until it tries again. Where the device did not say, not at all.
CREATE PERFETTO TABLE _wakeup_spans AS
WITH
  marks AS (
    SELECT *, 0 AS is_sleep FROM _wakeup_reports
    UNION ALL
    SELECT ts, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1 FROM android_suspend_state WHERE power_state = 'suspended'
  ),
  followed AS (SELECT *, lead(ts, 1, ts + 5000000000) OVER (ORDER BY ts) AS next_ts FROM marks)
SELECT
  *,
  CASE suspend_quality WHEN 'good' THEN min(next_ts - ts, 5000000000) WHEN 'bad' THEN backoff_millis * 1000000 ELSE 0 END AS dur,
  CASE
    WHEN raw_wakeup GLOB 'Abort: Pending Wakeup Sources: *' THEN 'abort_pending'
    WHEN raw_wakeup GLOB 'Abort: Last active Wakeup Source: *' THEN 'abort_last_active'
    WHEN raw_wakeup GLOB 'Abort: *' THEN 'abort_other'
    ELSE 'normal'
  END AS type
FROM followed
WHERE NOT is_sleep;

-- One row a cause, four of a report at most. Pending sources are apart by blanks, interrupts "NUMBER NAME" by colons; they go without
-- their numbers.
CREATE PERFETTO TABLE android_wakeups(
  -- When the device woke.
  ts TIMESTAMP,
  -- How long it can be held for awake, in nanoseconds.
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
  causes AS (
    SELECT
      *,
      CASE type
        WHEN 'abort_pending' THEN substr(raw_wakeup, length('Abort: Pending Wakeup Sources: ') + 1)
        WHEN 'abort_last_active' THEN substr(raw_wakeup, length('Abort: Last active Wakeup Source: ') + 1)
        WHEN 'abort_other' THEN substr(raw_wakeup, length('Abort: ') + 1)
        ELSE raw_wakeup
      END AS list,
      -- no cause of the other kinds has this sign, so that it stays whole
      CASE type WHEN 'abort_pending' THEN ' ' WHEN 'normal' THEN ':' ELSE char(10) END AS sign
    FROM _wakeup_spans
  ),
  places(place) AS (VALUES (0), (1), (2), (3))
SELECT
  ts,
  cast_int!(dur) AS dur,
  raw_wakeup,
  on_device_attribution,
  type,
  iif(
    type = 'normal',
    coalesce(str_split(str_split(list, sign, place), ' ', 1), str_split(list, sign, place)),
    str_split(list, sign, place)
  ) AS item,
  suspend_quality,
  backoff_state,
  coalesce(backoff_reason, 'none') AS backoff_reason,
  backoff_count,
  backoff_millis
FROM places
CROSS JOIN causes
WHERE place = 0 OR str_split(list, sign, place) IS NOT NULL;
