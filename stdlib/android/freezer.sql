-- Processes in the background that Android stopped from running for a while ("Freeze name:pid", "Unfreeze name:pid why").

-- The number of a process in the name of such a slice.
CREATE PERFETTO FUNCTION _extract_freezer_pid(
  name STRING
)
RETURNS LONG AS
SELECT cast_int!(regexp_extract($name, '^[^ ]+ [^ ]*:([0-9]+)'));

-- The process that had a number on a machine at a moment.
CREATE PERFETTO FUNCTION _pid_to_upid_on(
  pid LONG,
  event_ts TIMESTAMP,
  machine_id LONG
)
RETURNS LONG AS
SELECT upid
FROM process
WHERE
  machine_id = $machine_id
  AND pid = $pid
  AND $event_ts BETWEEN coalesce(start_ts, $event_ts) AND coalesce(end_ts, $event_ts)
ORDER BY upid DESC
LIMIT 1;

-- The same on the host.
CREATE PERFETTO FUNCTION _pid_to_upid(
  pid LONG,
  event_ts TIMESTAMP
)
RETURNS LONG AS
SELECT _pid_to_upid_on($pid, $event_ts, 0);

-- The name of a reason to let it run again.
CREATE PERFETTO FUNCTION _translate_unfreeze_reason(
  reason LONG
)
RETURNS STRING AS
WITH
  names(number, name) AS (
    VALUES
      (0, 'none'),
      (1, 'activity'),
      (2, 'finish_receiver'),
      (3, 'start_receiver'),
      (4, 'bind_service'),
      (5, 'unbind_service'),
      (6, 'start_service'),
      (7, 'get_provider'),
      (8, 'remove_provider'),
      (9, 'ui_visibility'),
      (10, 'allowlist'),
      (11, 'process_begin'),
      (12, 'process_end'),
      (13, 'trim_memory'),
      (15, 'ping'),
      (16, 'file_locks'),
      (17, 'file_lock_check_failure'),
      (18, 'binder_txns'),
      (19, 'feature_flags'),
      (20, 'short_fgs_timeout'),
      (21, 'system_init'),
      (22, 'backup'),
      (23, 'shell'),
      (24, 'remove_task'),
      (25, 'uid_idle'),
      (26, 'stop_service'),
      (27, 'executing_service'),
      (28, 'restriction_change'),
      (29, 'component_disabled')
  )
SELECT name FROM names WHERE number = $reason;

-- From each stop to what came next.
CREATE PERFETTO TABLE android_freezer_events(
  -- Row of process.
  upid JOINID(process.id),
  -- The kernel's number of the process.
  pid LONG,
  -- When the process was frozen.
  ts TIMESTAMP,
  -- How long it stayed so.
  dur DURATION,
  -- Why it was thawed, as a number.
  unfreeze_reason_int LONG,
  -- Why it was thawed, in words.
  unfreeze_reason_str STRING
) AS
WITH
  marks AS (
    SELECT
      s.ts,
      s.name GLOB 'Freeze *' AS frozen,
      _extract_freezer_pid(s.name) AS pid,
      cast_int!(regexp_extract(s.name, '^Unfreeze [^ ]+ ([0-9]+)')) AS reason,
      t.machine_id
    FROM slice AS s
    JOIN track AS t ON t.id = s.track_id
    WHERE s.name GLOB 'Freeze *:*' OR s.name GLOB 'Unfreeze *:*'
  ),
  known AS (SELECT *, _pid_to_upid_on(pid, ts, machine_id) AS upid FROM marks),
  spans AS (
    SELECT
      *,
      lead(ts, 1, trace_end()) OVER by_process - ts AS dur,
      lead(reason) OVER by_process AS next_reason
    FROM known
    WHERE upid IS NOT NULL
    WINDOW by_process AS (PARTITION BY upid ORDER BY ts)
  )
SELECT
  upid,
  pid,
  ts,
  dur,
  next_reason AS unfreeze_reason_int,
  _translate_unfreeze_reason(next_reason) AS unfreeze_reason_str
FROM spans
WHERE frozen;
