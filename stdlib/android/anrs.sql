-- Applications that did not respond, from what the system server writes when it finds one.

-- The kind of an ANR by the text of its subject.
CREATE PERFETTO FUNCTION _extract_anr_type(
  subject STRING,
  process_name STRING
)
RETURNS STRING AS
SELECT
  CASE
    WHEN $subject IS NULL THEN NULL
    WHEN $subject GLOB 'Broadcast of*' THEN 'BROADCAST_OF_INTENT'
    WHEN $subject GLOB 'Input dispatching timed out*No focused window*' OR $subject GLOB '*does not have a focused window*'
      THEN 'INPUT_DISPATCHING_TIMEOUT_NO_FOCUSED_WINDOW'
    WHEN $subject GLOB 'Input dispatching timed out*' THEN 'INPUT_DISPATCHING_TIMEOUT'
    WHEN $subject GLOB 'Context.startForegroundService*' THEN 'START_FOREGROUND_SERVICE'
    WHEN $subject GLOB 'executing service*' THEN 'EXECUTING_SERVICE'
    WHEN $subject GLOB 'ContentProvider not responding*' THEN 'CONTENT_PROVIDER_NOT_RESPONDING'
    WHEN $subject GLOB '*onStartJob*' THEN 'JOB_SERVICE_START'
    WHEN $subject GLOB '*onStopJob*' THEN 'JOB_SERVICE_STOP'
    WHEN $subject GLOB '*onBind*' OR $subject GLOB '*Timed out while trying to bind*' THEN 'JOB_SERVICE_BIND'
    WHEN $subject GLOB '*required notification not provided*' THEN 'JOB_SERVICE_NOTIFICATION_NOT_PROVIDED'
    -- the system asks in the name of the application when a fence never came
    WHEN $subject GLOB '*GPU hang*' THEN 'GPU_HANG'
    WHEN $subject GLOB '*App requested*' THEN 'APP_TRIGGERED'
    WHEN $subject GLOB '*FOREGROUND_SERVICE_TYPE_SHORT_SERVICE*' THEN 'FOREGROUND_SHORT_SERVICE_TIMEOUT'
    WHEN $subject GLOB 'A foreground service of *did not stop within a timeout*' THEN 'FOREGROUND_SERVICE_TIMEOUT'
    WHEN $subject GLOB '*failed to complete startup*' THEN 'BIND_APPLICATION'
    WHEN $process_name = 'system_server' THEN 'SYSTEM_SERVER_WATCHDOG_TIMEOUT'
    ELSE 'UNKNOWN_ANR_TYPE'
  END;

-- The flags that a broadcast was sent with.
CREATE PERFETTO FUNCTION _get_broadcast_flag(
  subject STRING
)
RETURNS LONG AS
SELECT unhex(regexp_extract($subject, 'flg=(0x[0-9a-f]+)'));

-- The time waited that the subject tells, in milliseconds.
CREATE PERFETTO FUNCTION _extract_anr_duration_from_subject(
  subject STRING
)
RETURNS LONG AS
SELECT CAST(regexp_extract($subject, 'Blocked in .* for ([0-9]+)s') AS INT) * 1000;

-- How long the system waits for this kind, in milliseconds.
CREATE PERFETTO FUNCTION _default_anr_dur(
  anr_type STRING,
  subject STRING
)
RETURNS LONG AS
SELECT
  CASE $anr_type
    WHEN 'INPUT_DISPATCHING_TIMEOUT' THEN 5000
    WHEN 'INPUT_DISPATCHING_TIMEOUT_NO_FOCUSED_WINDOW' THEN 5000
    -- a broadcast sent to the foreground (FLAG_RECEIVER_FOREGROUND) has less time
    WHEN 'BROADCAST_OF_INTENT' THEN iif(coalesce(_get_broadcast_flag($subject) & 0x10000000, 1), 10000, 60000)
    WHEN 'EXECUTING_SERVICE' THEN 20000
    WHEN 'START_FOREGROUND_SERVICE' THEN 30000
    WHEN 'CONTENT_PROVIDER_NOT_RESPONDING' THEN 10000
    WHEN 'JOB_SERVICE_START' THEN 8000
    WHEN 'JOB_SERVICE_STOP' THEN 8000
    WHEN 'JOB_SERVICE_BIND' THEN 8000
    WHEN 'BIND_APPLICATION' THEN 15000
    WHEN 'FOREGROUND_SHORT_SERVICE_TIMEOUT' THEN 180000
  END;

-- The intent that a broadcast or service was about.
CREATE PERFETTO FUNCTION _get_intent(
  anr_type STRING,
  subject STRING
)
RETURNS STRING AS
SELECT iif($anr_type IN ('BROADCAST_OF_INTENT', 'EXECUTING_SERVICE'), regexp_extract($subject, 'act=([^ ]+)'), NULL);

-- The component that did not answer.
CREATE PERFETTO FUNCTION _get_component(
  anr_type STRING,
  subject STRING
)
RETURNS STRING AS
SELECT
  CASE $anr_type
    WHEN 'BROADCAST_OF_INTENT' THEN regexp_extract($subject, 'cmp=([^ }]+)')
    WHEN 'INPUT_DISPATCHING_TIMEOUT' THEN regexp_extract($subject, '\([^ ]+ ([^ )]+)')
    WHEN 'INPUT_DISPATCHING_TIMEOUT_NO_FOCUSED_WINDOW' THEN regexp_extract($subject, '\([^ ]+ ([^ )]+)')
    WHEN 'EXECUTING_SERVICE' THEN regexp_extract($subject, 'executing service ([^ ,]+)')
    WHEN 'START_FOREGROUND_SERVICE' THEN regexp_extract($subject, ' u[0-9]+ ([^ }]+)')
    WHEN 'FOREGROUND_SHORT_SERVICE_TIMEOUT' THEN regexp_extract($subject, 'ComponentInfo\{([^}]+)')
    WHEN 'FOREGROUND_SERVICE_TIMEOUT' THEN regexp_extract($subject, 'ComponentInfo\{([^}]+)')
  END;

-- Timers that ran out: "expired(id,pid,uid,type,ms)".
CREATE PERFETTO TABLE _anr_timers AS
SELECT
  s.id,
  s.ts,
  t.machine_id,
  cast_int!(regexp_extract(s.name, '^expired\([^,]*,([0-9]+),')) AS pid,
  cast_int!(regexp_extract(s.name, '^expired\([^,]*,[^,]*,[^,]*,[^,]*,([0-9]+)')) AS anr_dur_ms
FROM slice AS s
JOIN track AS t ON t.id = s.track_id
WHERE s.name GLOB 'expired(*,*,*';

-- One row for each application that did not respond.
CREATE PERFETTO TABLE android_anrs(
  -- Name of the process.
  process_name STRING,
  -- The kernel's number of the process.
  pid LONG,
  -- Row of process.
  upid JOINID(process.id),
  -- Number that the system gave the error.
  error_id STRING,
  -- When the system declared it.
  ts TIMESTAMP,
  -- What the system says about it.
  subject STRING,
  -- Action of the intent that was handled; NULL: not about one.
  intent STRING,
  -- The component that did not answer; NULL: not told.
  component STRING,
  -- From when the timer ran out to when the system declared it, in nanoseconds; NULL: no timer is recorded.
  timer_delay LONG,
  -- Kind of ANR, by the subject.
  anr_type STRING,
  -- Milliseconds waited, as the subject tells; NULL: not told.
  anr_dur_ms LONG,
  -- Milliseconds that the system waits for this kind.
  default_anr_dur_ms LONG
) AS
WITH
  marks AS (
    SELECT
      c.ts,
      str_split(str_split(t.name, ':', 1), '#', 0) AS what,
      str_split(t.name, '#', 1) AS error_id,
      t.name,
      t.machine_id
    FROM counter AS c
    JOIN process_counter_track AS t ON t.id = c.track_id
    JOIN process AS p USING (upid)
    WHERE t.name GLOB 'ErrorId:*' AND p.name = 'system_server'
  ),
  subjects AS (
    SELECT t.name, t.machine_id
    FROM process_counter_track AS t
    JOIN process AS p USING (upid)
    WHERE t.name GLOB 'Subject(for ErrorId *' AND p.name = 'system_server'
  ),
  found AS (
    SELECT
      m.ts,
      m.error_id,
      m.machine_id,
      CAST(regexp_extract(m.name, 'ErrorId:[^ ]+ ([0-9]+)#') AS INT) AS pid,
      regexp_extract(m.name, 'ErrorId:([^ #]+)') AS process_name,
      regexp_extract(s.name, '\):(.*)$') AS subject
    FROM marks AS m
    LEFT JOIN subjects AS s ON s.machine_id = m.machine_id AND s.name GLOB 'Subject(for ErrorId ' || m.error_id || ')*'
  ),
  typed AS (SELECT *, _extract_anr_type(subject, process_name) AS anr_type FROM found)
SELECT
  a.process_name,
  a.pid,
  (
    SELECT p.upid
    FROM process AS p
    WHERE
      p.machine_id = a.machine_id
      AND p.pid = a.pid
      AND a.ts BETWEEN coalesce(p.start_ts, a.ts) AND coalesce(p.end_ts, a.ts)
    ORDER BY p.upid DESC
    LIMIT 1
  ) AS upid,
  a.error_id,
  a.ts,
  a.subject,
  _get_intent(a.anr_type, a.subject) AS intent,
  _get_component(a.anr_type, a.subject) AS component,
  a.ts - t.ts AS timer_delay,
  a.anr_type,
  coalesce(t.anr_dur_ms, _extract_anr_duration_from_subject(a.subject)) AS anr_dur_ms,
  _default_anr_dur(a.anr_type, a.subject) AS default_anr_dur_ms
FROM typed AS a
LEFT JOIN _anr_timers AS t ON t.id = (
  SELECT x.id
  FROM _anr_timers AS x
  WHERE x.pid = a.pid AND x.machine_id = a.machine_id AND x.ts <= a.ts
  ORDER BY x.ts DESC
  LIMIT 1
);

-- The name here of a kind as the platform's events call it.
CREATE PERFETTO FUNCTION _platform_to_standard_anr_type(
  platform STRING
)
RETURNS STRING AS
SELECT upper($platform);
