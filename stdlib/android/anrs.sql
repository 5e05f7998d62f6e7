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
    WHEN $subject GLOB 'Input dispatching timed out*does not have a focused window*'
      OR $subject GLOB 'Input dispatching timed out*Waiting because no window has focus but there is a focused application*'
      THEN 'INPUT_DISPATCHING_TIMEOUT_NO_FOCUSED_WINDOW'
    WHEN $subject GLOB 'Input dispatching timed out*' THEN 'INPUT_DISPATCHING_TIMEOUT'
    WHEN $subject GLOB 'Context.startForegroundService() did not then call Service.startForeground()*'
      THEN 'START_FOREGROUND_SERVICE'
    WHEN $subject GLOB 'executing service*' THEN 'EXECUTING_SERVICE'
    WHEN $subject GLOB 'ContentProvider not responding*' THEN 'CONTENT_PROVIDER_NOT_RESPONDING'
    -- the system asks in the name of the application when a fence never came
    WHEN $subject = 'App requested: Buffer processing hung up due to stuck fence. Indicates GPU hang' THEN 'GPU_HANG'
    WHEN $subject GLOB 'No response to onStartJob*' THEN 'JOB_SERVICE_START'
    WHEN $subject GLOB 'No response to onStopJob*' THEN 'JOB_SERVICE_STOP'
    WHEN $subject GLOB 'Timed out while trying to bind*' THEN 'JOB_SERVICE_BIND'
    WHEN $subject GLOB 'Process ProcessRecord{*} failed to complete startup' THEN 'BIND_APPLICATION'
    WHEN $subject GLOB 'A foreground service of FOREGROUND_SERVICE_TYPE_SHORT_SERVICE did not stop within a timeout*'
      THEN 'FOREGROUND_SHORT_SERVICE_TIMEOUT'
    WHEN $subject GLOB 'A foreground service of type*' THEN 'FOREGROUND_SERVICE_TIMEOUT'
    WHEN $subject GLOB 'App requested: *' THEN 'APP_TRIGGERED'
    WHEN $subject GLOB 'required notification not provided*' THEN 'JOB_SERVICE_NOTIFICATION_NOT_PROVIDED'
    WHEN $process_name = 'system_server' THEN 'SYSTEM_SERVER_WATCHDOG_TIMEOUT'
    ELSE 'UNKNOWN_ANR_TYPE'
  END;

-- The flags that a broadcast was sent with.
CREATE PERFETTO FUNCTION _get_broadcast_flag(
  subject STRING
)
RETURNS LONG AS
SELECT
  iif(
    $subject GLOB 'Broadcast of Intent *flg=*',
    unhex(str_split(substr($subject, instr($subject, ' flg=') + length(' flg=')), ' ', 0)),
    NULL
  );

-- The time waited that the subject tells, in milliseconds.
CREATE PERFETTO FUNCTION _extract_anr_duration_from_subject(
  subject STRING
)
RETURNS LONG AS
SELECT iif($subject GLOB '*Blocked in* for *s*', cast_int!(regexp_extract($subject, ' for ([0-9]+)s')) * 1000, NULL);

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
    WHEN 'JOB_SERVICE_START' THEN 8000
    WHEN 'JOB_SERVICE_STOP' THEN 8000
    WHEN 'JOB_SERVICE_BIND' THEN 8000
    WHEN 'JOB_SERVICE_NOTIFICATION_NOT_PROVIDED' THEN 8000
    WHEN 'BIND_APPLICATION' THEN 15000
    WHEN 'FOREGROUND_SERVICE_TIMEOUT' THEN 30000
    WHEN 'FOREGROUND_SHORT_SERVICE_TIMEOUT' THEN 180000
  END;

-- The action that a broadcast tells, or whom it was for.
CREATE PERFETTO FUNCTION _get_intent(
  anr_type STRING,
  subject STRING
)
RETURNS STRING AS
SELECT
  CASE
    WHEN $anr_type != 'BROADCAST_OF_INTENT' THEN NULL
    WHEN $subject GLOB 'Broadcast of Intent *act=*' THEN str_split(substr($subject, instr($subject, 'act=') + length('act=')), ' ', 0)
    WHEN $subject GLOB 'Broadcast of */u*' THEN str_split(substr($subject, length('Broadcast of ') + 1), '/u', 0)
  END;

-- What stands in a text behind a word, up to a sign. Without the word it is what stands behind so many letters.
CREATE PERFETTO FUNCTION _anr_text_behind(
  text STRING,
  word STRING,
  up_to STRING
)
RETURNS STRING AS
SELECT str_split(substr($text, instr($text, $word) + length($word)), $up_to, 0);

-- The component that did not answer.
CREATE PERFETTO FUNCTION _get_component(
  anr_type STRING,
  subject STRING
)
RETURNS STRING AS
SELECT
  CASE $anr_type
    WHEN 'BROADCAST_OF_INTENT' THEN _anr_text_behind($subject, ' cmp=', ' ')
    WHEN 'INPUT_DISPATCHING_TIMEOUT' THEN str_split(substr($subject, instr($subject, '(') + 1), ' ', 1)
    -- "ServiceRecord{… u0 com.app/.Service …}"
    WHEN 'START_FOREGROUND_SERVICE' THEN _anr_text_behind(substr($subject, instr($subject, ' u') + 1), ' ', ' ')
    WHEN 'EXECUTING_SERVICE' THEN _anr_text_behind($subject, 'executing service ', ',')
    WHEN 'FOREGROUND_SHORT_SERVICE_TIMEOUT' THEN _anr_text_behind($subject, 'ComponentInfo{', '}')
    WHEN 'FOREGROUND_SERVICE_TIMEOUT' THEN _anr_text_behind($subject, 'ComponentInfo{', '}')
    WHEN 'APP_TRIGGERED' THEN substr($subject, instr($subject, 'App requested: ') + length('App requested: '))
  END;

-- The name here of a kind as the platform's timers call it. Those of jobs are of several kinds.
CREATE PERFETTO FUNCTION _platform_to_standard_anr_type(
  platform STRING
)
RETURNS STRING AS
SELECT
  CASE $platform
    WHEN 'BROADCAST_TIMEOUT' THEN 'BROADCAST_OF_INTENT'
    WHEN 'SERVICE_TIMEOUT' THEN 'EXECUTING_SERVICE'
    WHEN 'SHORT_FGS_TIMEOUT' THEN 'FOREGROUND_SHORT_SERVICE_TIMEOUT'
    WHEN 'SERVICE_FOREGROUND_TIMEOUT' THEN 'FOREGROUND_SERVICE_TIMEOUT'
    WHEN 'JobScheduler' THEN NULL
    ELSE $platform
  END;

-- Timers that ran out: "expired(id,pid,uid,type,ms)".
CREATE PERFETTO TABLE _anr_timers AS
SELECT
  s.id,
  s.ts,
  t.machine_id,
  cast_int!(str_split(s.name, ',', 1)) AS pid,
  str_split(s.name, ',', 3) AS anr_type,
  cast_int!(str_split(s.name, ',', 4)) AS anr_dur_ms
FROM slice AS s
JOIN track AS t ON t.id = s.track_id
WHERE s.name GLOB 'expired(*,*,*,*,*)';

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
  -- Kind of ANR, as the timer calls it, or else by the subject.
  anr_type STRING,
  -- Milliseconds waited, as the timer or else the subject tells; NULL: not told.
  anr_dur_ms LONG,
  -- Milliseconds that the system waits for this kind.
  default_anr_dur_ms LONG
) AS
WITH
  marks AS (
    SELECT
      c.ts,
      substr(str_split(t.name, '#', 0), length('ErrorId:') + 1) AS what,
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
      cast_int!(str_split(m.what, ' ', 1)) AS pid,
      str_split(m.what, ' ', 0) AS process_name,
      substr(s.name, instr(s.name, ')') + 2) AS subject
    FROM marks AS m
    LEFT JOIN subjects AS s ON s.machine_id = m.machine_id AND s.name GLOB 'Subject(for ErrorId ' || m.error_id || ')*'
  ),
  timed AS (
    SELECT
      f.*,
      (
        SELECT x.id
        FROM _anr_timers AS x
        WHERE x.pid = f.pid AND x.machine_id = f.machine_id AND x.ts <= f.ts
        ORDER BY x.ts DESC
        LIMIT 1
      ) AS timer_id
    FROM found AS f
  ),
  typed AS (
    SELECT
      f.*,
      f.ts - t.ts AS timer_delay,
      t.anr_dur_ms,
      coalesce(_platform_to_standard_anr_type(t.anr_type), _extract_anr_type(f.subject, f.process_name)) AS anr_type
    FROM timed AS f
    LEFT JOIN _anr_timers AS t ON t.id = f.timer_id
  )
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
  a.anr_type,
  a.subject,
  _get_intent(a.anr_type, a.subject) AS intent,
  _get_component(a.anr_type, a.subject) AS component,
  a.timer_delay,
  coalesce(a.anr_dur_ms, _extract_anr_duration_from_subject(a.subject)) AS anr_dur_ms,
  _default_anr_dur(a.anr_type, a.subject) AS default_anr_dur_ms
FROM typed AS a;
