-- What Chrome's threads worked on.

INCLUDE PERFETTO MODULE slices.with_context;

-- The name of a Java view without what its class adds, and whether it was drawn for a picture of the tool bar.
CREATE PERFETTO VIEW chrome_java_views(
  -- Name of the view without what its class adds.
  filtered_name STRING,
  -- Was it drawn for a picture, by software?
  is_software_screenshot BOOL,
  -- Was it drawn for a picture, by hardware?
  is_hardware_screenshot BOOL,
  -- Row of slice.
  slice_id LONG
) AS
SELECT
  regexp_extract(name, '^([^.]+(?:\.[^.]+)?)') AS filtered_name,
  name GLOB '*captureWithSoftwareDraw*' AS is_software_screenshot,
  name GLOB '*captureWithHardwareDraw*' AS is_hardware_screenshot,
  id AS slice_id
FROM slice
WHERE category = 'toplevel,viz' OR name GLOB '*ViewResourceAdapter*' OR name GLOB '*View.on*' OR name GLOB '*Layout.on*';

-- Tasks of the scheduler: "RunTask(posted_from=function)". One inside another is part of it.
CREATE PERFETTO VIEW chrome_scheduler_tasks(
  -- Row of slice.
  id LONG,
  -- Always "chrome_scheduler_tasks".
  type STRING,
  -- Its name.
  name STRING,
  -- When the task began.
  ts TIMESTAMP,
  -- Duration of the task in nanoseconds.
  dur DURATION,
  -- Row of thread.
  utid LONG,
  -- Name of the thread.
  thread_name STRING,
  -- Row of process.
  upid LONG,
  -- Name of the process.
  process_name STRING,
  -- Row of track.
  track_id LONG,
  -- Category of the slice.
  category STRING,
  -- How many levels stand above it.
  depth LONG,
  -- The slice it lies in; NULL: outermost.
  parent_id LONG,
  -- Details: the set of args.
  arg_set_id LONG,
  -- CPU time of the thread at the start.
  thread_ts TIMESTAMP,
  -- CPU time of the thread within it.
  thread_dur DURATION,
  -- The function that asked for it.
  posted_from STRING
) AS
SELECT
  id,
  'chrome_scheduler_tasks' AS type,
  'RunTask(posted_from=' || coalesce(
    extract_arg(arg_set_id, 'task.posted_from.file_name') || ':' || extract_arg(arg_set_id, 'task.posted_from.function_name'),
    ''
  ) || ')' AS name,
  ts,
  dur,
  utid,
  thread_name,
  upid,
  process_name,
  track_id,
  category,
  depth,
  parent_id,
  arg_set_id,
  thread_ts,
  thread_dur,
  extract_arg(arg_set_id, 'task.posted_from.file_name') || ':' || extract_arg(arg_set_id, 'task.posted_from.function_name')
    AS posted_from
FROM thread_slice
WHERE category GLOB '*toplevel*' AND name IN ('ThreadControllerImpl::RunTask', 'ThreadPool_RunTask');

-- Those, and what threads of Chrome do outside of them: calls between processes, the loop of the application, views.
CREATE PERFETTO VIEW chrome_tasks(
  -- Row of slice.
  id LONG,
  -- Its name.
  name STRING,
  -- Kind of task.
  task_type STRING,
  -- Name of the thread.
  thread_name STRING,
  -- Row of thread.
  utid LONG,
  -- Name of the process.
  process_name STRING,
  -- Row of process.
  upid LONG,
  -- When the task began.
  ts TIMESTAMP,
  -- Duration of the task in nanoseconds.
  dur DURATION,
  -- Row of track.
  track_id LONG,
  -- Category of the slice.
  category STRING,
  -- Details: the set of args.
  arg_set_id LONG,
  -- CPU time of the thread at the start.
  thread_ts TIMESTAMP,
  -- CPU time of the thread within it.
  thread_dur DURATION,
  -- Its name with what is below it.
  full_name STRING
) AS
WITH
  scheduler AS (SELECT * FROM chrome_scheduler_tasks),
  others AS (
    SELECT
      s.*,
      CASE
        WHEN s.name GLOB 'Choreographer*' THEN 'choreographer'
        WHEN s.name GLOB 'Looper.*' THEN 'java'
        WHEN s.name IN ('Receive mojo message', 'Receive mojo reply', 'Receive mojo sync reply') THEN 'mojo'
        WHEN s.category GLOB '*navigation*' THEN 'navigation_task'
        ELSE 'other'
      END AS task_type
    FROM thread_slice AS s
    WHERE s.category GLOB '*toplevel*' AND s.depth = 0 AND s.id NOT IN (SELECT id FROM scheduler)
  )
SELECT
  id, name, 'scheduler' AS task_type, thread_name, utid, process_name, upid, ts, dur, track_id, category, arg_set_id,
  thread_ts, thread_dur, name AS full_name
FROM scheduler
UNION ALL
SELECT
  id, name, task_type, thread_name, utid, process_name, upid, ts, dur, track_id, category, arg_set_id, thread_ts, thread_dur,
  name
FROM others;

-- Does a slice of a name lie around another?
CREATE PERFETTO FUNCTION _has_parent_slice_with_name(
  -- Row of slice.
  id LONG,
  -- The name.
  parent_name STRING
)
RETURNS BOOL AS
SELECT EXISTS (SELECT 1 FROM ancestor_slice($id) AS a WHERE a.name = $parent_name);

-- The hash of the message that a task handles, as Mojo has it.
CREATE PERFETTO FUNCTION _extract_mojo_ipc_hash(
  -- Row of slice.
  slice_id LONG
)
RETURNS LONG AS
SELECT extract_arg(arg_set_id, 'chrome_mojo_event_info.ipc_hash') FROM slice WHERE id = $slice_id;
