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

-- Does a category name the outermost work of a thread ("toplevel", "toplevel,viz", …)?
CREATE PERFETTO FUNCTION _any_top_level_category(
  category STRING
)
RETURNS BOOL AS
SELECT ',' || $category || ',' GLOB '*,toplevel,*';

-- Does a category name Java's work only, not the outermost of a thread?
CREATE PERFETTO FUNCTION _java_not_top_level_category(
  category STRING
)
RETURNS BOOL AS
SELECT ',' || $category || ',' GLOB '*,Java,*' AND NOT _any_top_level_category($category);

-- Where a task was asked for, "FILE:FUNCTION"; NULL where its args do not say.
CREATE PERFETTO FUNCTION _get_posted_from(
  -- Details of the slice: the set of args.
  arg_set_id LONG
)
RETURNS STRING AS
SELECT extract_arg($arg_set_id, 'task.posted_from.file_name') || ':' || extract_arg($arg_set_id, 'task.posted_from.function_name');

-- The name of a task of the scheduler, from where it was asked for.
CREATE PERFETTO FUNCTION _format_scheduler_task_name(
  task_name STRING
)
RETURNS STRING AS
SELECT 'RunTask(posted_from=' || coalesce($task_name, '') || ')';

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
  _format_scheduler_task_name(_get_posted_from(arg_set_id)) AS name,
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
  _get_posted_from(arg_set_id) AS posted_from
FROM thread_slice
WHERE category GLOB '*toplevel*' AND name IN ('ThreadControllerImpl::RunTask', 'ThreadPool_RunTask');

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

-- Work for frames of Android.
CREATE PERFETTO VIEW _chrome_choreographer_tasks AS
SELECT id, 'Choreographer' AS kind, ts, dur, name
FROM slice
WHERE name GLOB 'Looper.dispatch: android.view.Choreographer$FrameHandler*' OR name GLOB 'Choreographer*';

-- The work on frames of the main thread that holds operations with views.
CREATE PERFETTO FUNCTION _select_begin_main_frame_java_slices(
  -- Name of the slices.
  name STRING
)
RETURNS TABLE(
  -- Row of slice.
  id LONG,
  -- Kind of slice.
  kind STRING,
  -- When it began.
  ts TIMESTAMP,
  -- Its duration.
  dur DURATION,
  -- Its name.
  name STRING
) AS
SELECT id, 'SingleThreadProxy::BeginMainFrame' AS kind, ts, dur, name
FROM slice
WHERE
  name = $name
  AND extract_arg(arg_set_id, 'task.posted_from.function_name') = 'ScheduledActionSendBeginMainFrame';

-- The outermost operations with views that no library or system names.
CREATE PERFETTO TABLE _chrome_java_views AS
WITH
  views AS MATERIALIZED (SELECT * FROM chrome_java_views),
  inner_views AS (
    SELECT v.slice_id
    FROM views AS v
    JOIN ancestor_slice(v.slice_id) AS a
    JOIN views AS around ON around.slice_id = a.id
  )
SELECT s.id, s.ts, s.dur, v.filtered_name AS name, v.is_software_screenshot, v.is_hardware_screenshot
FROM views AS v
JOIN slice AS s ON s.id = v.slice_id
WHERE v.slice_id NOT IN (SELECT slice_id FROM inner_views);

-- Tasks that did something with views, and what those are called.
CREATE PERFETTO TABLE _chrome_slices_with_java_views AS
WITH
  roots AS (
    SELECT id, kind FROM _chrome_choreographer_tasks
    UNION ALL
    SELECT id, kind FROM _select_begin_main_frame_java_slices('ThreadControllerImpl::RunTask')
  )
SELECT r.id, r.kind, group_concat(DISTINCT v.name) AS java_views
FROM roots AS r
JOIN descendant_slice(r.id) AS d
JOIN _chrome_java_views AS v ON v.id = d.id
GROUP BY r.id;

-- Slices that receive a message of Mojo: the interface, the hash of the message, and whether it is one or the answer to one.
CREATE PERFETTO TABLE _chrome_mojo_slices AS
SELECT
  coalesce(
    extract_arg(arg_set_id, 'chrome_mojo_event_info.mojo_interface_tag'),
    extract_arg(arg_set_id, 'mojo_interface_tag'),
    regexp_extract(name, '^Receive ([^ ]+)$')
  ) AS interface_name,
  extract_arg(arg_set_id, 'chrome_mojo_event_info.ipc_hash') AS ipc_hash,
  iif(
    name GLOB '*reply' OR extract_arg(arg_set_id, 'chrome_mojo_event_info.is_reply'), 'reply', 'message'
  ) AS message_type,
  id
FROM slice
WHERE _any_top_level_category(category) AND (name GLOB 'Receive *' OR name = 'Connector::DispatchMessage');

-- The message that a task handles: the first slice inside it that receives one.
CREATE PERFETTO FUNCTION _get_descendant_mojo_slice_candidate(
  -- Row of slice: the task.
  slice_id LONG
)
RETURNS LONG AS
SELECT min(d.id) FROM descendant_slice($slice_id) AS d JOIN _chrome_mojo_slices AS m ON m.id = d.id;

-- The name of a task that handles a message.
CREATE PERFETTO FUNCTION _chrome_mojo_task_name(
  interface_name STRING,
  -- message or reply.
  message_type STRING,
  -- The hash of the message, as Mojo has it.
  ipc_hash LONG
)
RETURNS STRING AS
SELECT coalesce($interface_name, '') || ' ' || $message_type || ' (hash=' || coalesce($ipc_hash, '') || ')';

-- The name that such a task has after its message; none for tasks without one.
CREATE PERFETTO FUNCTION _descendant_mojo_slice(
  -- Row of slice: the task.
  slice_id LONG
)
RETURNS TABLE(
  task_name STRING
) AS
SELECT _chrome_mojo_task_name(m.interface_name, m.message_type, m.ipc_hash) AS task_name
FROM _chrome_mojo_slices AS m
WHERE m.id = _get_descendant_mojo_slice_candidate($slice_id);

-- The tasks of the scheduler.
CREATE PERFETTO TABLE _chrome_scheduler_tasks AS
SELECT id, name AS task_name, posted_from, ts, dur, utid, upid
FROM chrome_scheduler_tasks;

-- Tasks of the scheduler that Mojo asked for, and the first message inside each. What other tasks wait for is no task of theirs.
CREATE PERFETTO TABLE _chrome_mojo_tasks AS
SELECT t.id, min(m.id) AS mojo_id
FROM _chrome_mojo_slices AS m
JOIN ancestor_slice(m.id) AS a
JOIN _chrome_scheduler_tasks AS t ON t.id = a.id
WHERE t.posted_from GLOB 'mojo/public/*' OR t.posted_from GLOB 'ipc/ipc_mojo_bootstrap.cc:*'
GROUP BY t.id;

-- The name of a task that did something with views.
CREATE PERFETTO FUNCTION _chrome_java_views_task_name(
  -- Kind of task.
  kind STRING,
  -- What the views are called.
  java_views STRING
)
RETURNS STRING AS
SELECT $kind || '(java_views=' || $java_views || ')';

-- What a thread does outside of the scheduler's tasks: the outermost slices of its loop and of Java.
CREATE PERFETTO TABLE _chrome_unscheduled_tasks AS
SELECT
  s.id,
  coalesce(_chrome_java_views_task_name(v.kind, v.java_views), s.name) AS name,
  CASE
    WHEN c.id IS NOT NULL THEN 'choreographer'
    WHEN s.name GLOB 'Looper.*' OR _java_not_top_level_category(s.category) THEN 'java'
    WHEN s.name IN ('Receive mojo message', 'Receive mojo reply', 'Receive mojo sync reply') THEN 'mojo'
    WHEN s.category GLOB '*navigation*' THEN 'navigation_task'
    ELSE 'other'
  END AS task_type
FROM thread_slice AS s
LEFT JOIN _chrome_choreographer_tasks AS c USING (id)
LEFT JOIN _chrome_slices_with_java_views AS v USING (id)
WHERE
  s.depth = 0
  AND (_any_top_level_category(s.category) OR _java_not_top_level_category(s.category))
  AND s.id NOT IN (SELECT id FROM _chrome_scheduler_tasks);

-- All tasks with their name and kind.
CREATE PERFETTO TABLE _chrome_task_kinds AS
SELECT
  t.id,
  CASE
    WHEN m.id IS NOT NULL THEN _chrome_mojo_task_name(m.interface_name, m.message_type, m.ipc_hash)
    WHEN v.id IS NOT NULL THEN _chrome_java_views_task_name(v.kind, v.java_views)
    ELSE t.task_name
  END AS name,
  CASE
    WHEN m.id IS NOT NULL THEN 'mojo'
    WHEN v.id IS NOT NULL THEN 'ui_thread_begin_main_frame'
    ELSE 'scheduler'
  END AS task_type
FROM _chrome_scheduler_tasks AS t
LEFT JOIN _chrome_mojo_tasks AS x USING (id)
LEFT JOIN _chrome_mojo_slices AS m ON m.id = x.mojo_id
LEFT JOIN _chrome_slices_with_java_views AS v ON v.id = t.id
UNION ALL
SELECT id, name, task_type FROM _chrome_unscheduled_tasks;

-- Those, and what threads of Chrome do outside of them: the loop of the application, views. A task is named after the message
-- that it handles, and after the views that it draws.
CREATE PERFETTO VIEW chrome_tasks(
  -- Row of slice.
  id LONG,
  -- Its name.
  name STRING,
  -- Kind of task: scheduler, mojo, choreographer, ui_thread_begin_main_frame, java, navigation_task or other.
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
  -- Its name, as in name.
  full_name STRING
) AS
SELECT
  s.id, k.name, k.task_type, s.thread_name, s.utid, s.process_name, s.upid, s.ts, s.dur, s.track_id, s.category, s.arg_set_id,
  s.thread_ts, s.thread_dur, k.name AS full_name
FROM _chrome_task_kinds AS k
JOIN thread_slice AS s USING (id);

-- All tasks: what a thread does at most one of at a time.
CREATE PERFETTO TABLE _chrome_tasks AS
SELECT
  t.id,
  t.name AS task_name,
  t.task_type,
  extract_arg(t.arg_set_id, 'current_task.task_queueing_time_us') * 1000 AS scheduling_delay
FROM chrome_tasks AS t;
