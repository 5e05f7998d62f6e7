-- Windows of the desktop mode.

INCLUDE PERFETTO MODULE android.statsd;

-- The windows; what began before the trace or goes on behind it is cut at its bounds.
CREATE PERFETTO TABLE android_desktop_mode_windows(
  -- When the window was opened; NULL: before the trace.
  raw_add_ts TIMESTAMP,
  -- When it was closed; NULL: it stayed.
  raw_remove_ts TIMESTAMP,
  -- When the window began.
  ts TIMESTAMP,
  -- Duration of the window in nanoseconds.
  dur DURATION,
  -- Number of the window.
  instance_id LONG,
  -- The user id of its application.
  uid LONG
) AS
WITH
  updates AS (
    SELECT
      ts,
      extract_arg(arg_set_id, 'desktop_mode_session_task_update.task_event') AS event,
      extract_arg(arg_set_id, 'desktop_mode_session_task_update.instance_id') AS instance_id,
      extract_arg(arg_set_id, 'desktop_mode_session_task_update.uid') AS uid,
      extract_arg(arg_set_id, 'desktop_mode_session_task_update.session_id') AS session_id
    FROM android_statsd_atoms
    WHERE name = 'desktop_mode_session_task_update'
  ),
  added AS (SELECT * FROM updates WHERE event = 'TASK_ADDED'),
  removed AS (SELECT * FROM updates WHERE event = 'TASK_REMOVED'),
  pairs AS (
    SELECT a.ts AS raw_add_ts, r.ts AS raw_remove_ts, a.instance_id, coalesce(a.uid, r.uid) AS uid
    FROM added AS a
    LEFT JOIN removed AS r USING (instance_id, session_id)
    UNION ALL
    SELECT NULL, r.ts, r.instance_id, r.uid
    FROM removed AS r
    LEFT JOIN added AS a USING (instance_id, session_id)
    WHERE a.ts IS NULL
  ),
  -- with the end of the session that was not told: its windows are counted anew then
  windows AS (
    SELECT
      raw_add_ts,
      raw_remove_ts,
      coalesce(raw_add_ts, trace_start()) AS ts,
      coalesce(
        raw_remove_ts,
        (SELECT min(u.ts) FROM updates AS u WHERE u.event = 'TASK_INIT_STATSD' AND u.ts > coalesce(raw_add_ts, trace_start())),
        trace_end()
      ) AS ts_end,
      instance_id,
      uid
    FROM pairs
  )
SELECT DISTINCT raw_add_ts, raw_remove_ts, ts, ts_end - ts AS dur, instance_id, uid
FROM windows
UNION ALL
-- windows that only changed were there all the time
SELECT NULL, NULL, trace_start(), trace_end() - trace_start(), instance_id, min(uid)
FROM updates
WHERE event = 'TASK_INFO_CHANGED' AND instance_id NOT IN (SELECT instance_id FROM windows)
GROUP BY instance_id, session_id
ORDER BY 1, 2, 3, 4, 5, 6;
