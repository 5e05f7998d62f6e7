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
      extract_arg(arg_set_id, 'desktop_mode_session_task_update.uid') AS uid
    FROM android_statsd_atoms
    WHERE name = 'desktop_mode_session_task_update'
  ),
  windows AS (
    SELECT
      instance_id,
      uid,
      min(iif(event IN ('TASK_ADDED', 'TASK_INIT_STATSD'), ts, NULL)) AS added,
      max(iif(event = 'TASK_REMOVED', ts, NULL)) AS removed
    FROM updates
    GROUP BY instance_id, uid
  )
SELECT
  added AS raw_add_ts,
  removed AS raw_remove_ts,
  coalesce(added, trace_start()) AS ts,
  coalesce(removed, trace_end()) - coalesce(added, trace_start()) AS dur,
  instance_id,
  uid
FROM windows
WHERE added IS NOT NULL OR removed IS NOT NULL;
