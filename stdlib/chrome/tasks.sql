-- What Chrome's threads worked on.

-- Does a slice of a name lie around another?
CREATE PERFETTO FUNCTION _has_parent_slice_with_name(
  -- Row of slice.
  id LONG,
  -- The name.
  parent_name STRING
)
RETURNS BOOL AS
SELECT EXISTS (SELECT 1 FROM ancestor_slice($id) AS a WHERE a.name = $parent_name);

-- The hash of the message that a task handles, as Mojo has it: older releases tell it in a slice below.
CREATE PERFETTO FUNCTION _extract_mojo_ipc_hash(
  -- Row of slice.
  slice_id LONG
)
RETURNS LONG AS
SELECT extract_arg(d.arg_set_id, 'chrome_mojo_event_info.ipc_hash')
FROM descendant_slice($slice_id) AS d
WHERE d.name = 'ScopedSetIpcHash'
ORDER BY d.id
LIMIT 1;

-- Which frame of a page a task of a navigation is about (PRIMARY_MAIN_FRAME, SUBFRAME, …), as the first slice below it that knows
-- tells; NULL: none does.
CREATE PERFETTO FUNCTION _extract_frame_type(
  -- Row of slice.
  slice_id LONG
)
RETURNS LONG AS
SELECT extract_arg(d.arg_set_id, 'render_frame_host.frame_type')
FROM descendant_slice($slice_id) AS d
WHERE
  d.name IN (
    'RenderFrameHostImpl::BeginNavigation',
    'RenderFrameHostImpl::DidCommitProvisionalLoad',
    'RenderFrameHostImpl::DidCommitSameDocumentNavigation',
    'RenderFrameHostImpl::DidStopLoading'
  )
LIMIT 1;

-- What the messages of navigations are called; NULL for other ones.
CREATE PERFETTO FUNCTION _human_readable_navigation_task_name(
  -- Name of the task, as _descendant_mojo_slice has it.
  task_name STRING
)
RETURNS STRING AS
SELECT
  'FrameHost::' || CASE $task_name
    WHEN 'content.mojom.FrameHost message (hash=2168461044)' THEN 'BeginNavigation'
    WHEN 'content.mojom.FrameHost message (hash=3561497419)' THEN 'DidCommitProvisionalLoad'
    WHEN 'content.mojom.FrameHost message (hash=1421450774)' THEN 'DidCommitSameDocumentNavigation'
    WHEN 'content.mojom.FrameHost message (hash=368650583)' THEN 'DidStopLoading'
  END;

-- The name of a task of the scheduler, from where it was asked for.
CREATE PERFETTO FUNCTION _format_scheduler_task_name(
  task_name STRING
)
RETURNS STRING AS
SELECT 'RunTask(posted_from=' || coalesce($task_name, '') || ')';

-- Does a category name Java's work only, not the outermost of a thread?
CREATE PERFETTO FUNCTION _java_not_top_level_category(
  category STRING
)
RETURNS BOOL AS
SELECT $category GLOB '*Java*' AND NOT $category GLOB '*toplevel*';

-- Is a category one of the outermost work of a thread?
CREATE PERFETTO FUNCTION _any_top_level_category(
  category STRING
)
RETURNS BOOL AS
SELECT $category IN ('toplevel', 'toplevel,viz', 'toplevel,Java');

-- The task type of work that holds operations with views.
CREATE PERFETTO FUNCTION _get_java_views_task_type(
  -- Its kind, as _chrome_slices_with_java_views has it.
  kind STRING
)
RETURNS STRING AS
SELECT
  CASE $kind
    WHEN 'Choreographer' THEN 'choreographer'
    WHEN 'SingleThreadProxy::BeginMainFrame' THEN 'ui_thread_begin_main_frame'
  END;

-- Slices that receive a message of Mojo: the interface, the hash of the message, and whether it is one or the answer to one; NULL where
-- the slice is named after the message. Two kinds of them are of older releases.
CREATE PERFETTO TABLE _chrome_mojo_slices AS
SELECT
  extract_arg(arg_set_id, 'chrome_mojo_event_info.mojo_interface_tag') AS interface_name,
  extract_arg(arg_set_id, 'chrome_mojo_event_info.ipc_hash') AS ipc_hash,
  CASE name WHEN 'Receive mojo message' THEN 'message' WHEN 'Receive mojo reply' THEN 'reply' END AS message_type,
  id
FROM slice
WHERE category GLOB '*toplevel*' AND name GLOB 'Receive *'
UNION ALL
SELECT name, _extract_mojo_ipc_hash(id), 'message', id
FROM slice
WHERE category GLOB '*mojom*' AND name GLOB '*.mojom.*'
UNION ALL
SELECT
  coalesce(
    extract_arg(arg_set_id, 'chrome_mojo_event_info.watcher_notify_interface_tag'),
    extract_arg(arg_set_id, 'chrome_mojo_event_info.mojo_interface_tag')
  ),
  _extract_mojo_ipc_hash(id),
  'message',
  id
FROM slice
WHERE category GLOB '*toplevel*' AND name = 'Connector::DispatchMessage'
ORDER BY id;

-- The outermost operations with views that no library or system names; the name is without what is done to the view. Was it drawn for a
-- picture of the tool bar, by software or by hardware?
CREATE PERFETTO TABLE _chrome_java_views AS
WITH
  views AS (
    SELECT
      id,
      replace(
        replace(replace(replace(replace(name, '.draw', ''), '.onLayout', ''), '.onMeasure', ''), '.Layout', ''), '.Measure', ''
      ) AS name,
      ts,
      dur
    FROM slice
    WHERE _java_not_top_level_category(category) AND dur > 0
  ),
  telling AS MATERIALIZED (
    SELECT *
    FROM views
    WHERE
      name NOT IN (
        'AppCompatImageButton', 'ComponentHost', 'CompositorView:finalizeLayers', 'CompositorViewHolder', 'CompositorViewHolder:layout',
        'CompositorViewHolder:updateContentViewChildrenDimension', 'ContentFrameLayout', 'CoordinatorLayout',
        'CoordinatorLayoutForPointer', 'FitWindowsFrameLayout', 'FitWindowsLinearLayout', 'LayoutDriver:onUpdate',
        'OptimizedFrameLayout', 'ScrollingBottomViewResourceFrameLayout', 'ViewResourceAdapter:captureWithHardwareDraw',
        'ViewResourceAdapter:captureWithSoftwareDraw', 'ViewResourceAdapter:getBitmap', 'ViewResourceFrameLayout'
      )
  ),
  inner_views AS (
    SELECT v.id FROM telling AS v JOIN ancestor_slice(v.id) AS a JOIN telling AS around ON around.id = a.id
  )
SELECT
  id,
  name,
  ts,
  dur,
  _has_parent_slice_with_name(id, 'ViewResourceAdapter:captureWithSoftwareDraw') AS is_software_screenshot,
  _has_parent_slice_with_name(id, 'ViewResourceAdapter:captureWithHardwareDraw') AS is_hardware_screenshot
FROM telling
WHERE id NOT IN (SELECT id FROM inner_views)
ORDER BY id;

-- Operations with Java views: the outermost of those that no library or system names.
CREATE PERFETTO VIEW chrome_java_views(
  -- Name of the view without what is done to it.
  filtered_name STRING,
  -- Was it drawn for a picture, by software?
  is_software_screenshot BOOL,
  -- Was it drawn for a picture, by hardware?
  is_hardware_screenshot BOOL,
  -- Row of slice.
  slice_id LONG
) AS
SELECT name AS filtered_name, is_software_screenshot, is_hardware_screenshot, id AS slice_id
FROM _chrome_java_views;

-- Work for frames of Android.
CREATE PERFETTO VIEW _chrome_choreographer_tasks AS
SELECT id, 'Choreographer' AS kind, ts, dur, name
FROM slice
WHERE name GLOB 'Looper.dispatch: android.view.Choreographer$FrameHandler*';

-- Where a task was asked for, "FILE:FUNCTION"; NULL where its args do not say.
CREATE PERFETTO FUNCTION _get_posted_from(
  -- Details of the slice: the set of args.
  arg_set_id LONG
)
RETURNS STRING AS
SELECT extract_arg($arg_set_id, 'task.posted_from.file_name') || ':' || extract_arg($arg_set_id, 'task.posted_from.function_name');

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
  AND _get_posted_from(arg_set_id) = 'cc/trees/single_thread_proxy.cc:ScheduledActionSendBeginMainFrame';

-- Tasks that work on frames, and what the views are called that they did something with, in the order of their first operations; NULL
-- without any.
CREATE PERFETTO VIEW _chrome_slices_with_java_views AS
WITH
  roots AS (
    SELECT id, kind FROM _select_begin_main_frame_java_slices('ThreadControllerImpl::RunTask')
    UNION ALL
    SELECT id, kind FROM _chrome_choreographer_tasks
  ),
  named AS (
    SELECT r.id, v.name, v.id AS view_id
    FROM roots AS r
    JOIN descendant_slice(r.id) AS d
    JOIN _chrome_java_views AS v ON v.id = d.id
  )
SELECT r.id, r.kind, group_concat(DISTINCT n.name ORDER BY n.view_id) AS java_views
FROM roots AS r
LEFT JOIN named AS n USING (id)
GROUP BY r.id;

-- The tasks of the scheduler: (id).
CREATE PERFETTO TABLE _chrome_scheduler_tasks AS
SELECT id
FROM slice
WHERE category GLOB '*toplevel*' AND name IN ('ThreadControllerImpl::RunTask', 'ThreadPool_RunTask')
ORDER BY id;

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
  s.id,
  'chrome_scheduler_tasks' AS type,
  _format_scheduler_task_name(_get_posted_from(s.arg_set_id)) AS name,
  s.ts,
  s.dur,
  t.utid,
  t.name AS thread_name,
  p.upid,
  p.name AS process_name,
  s.track_id,
  s.category,
  s.depth,
  s.parent_id,
  s.arg_set_id,
  s.thread_ts,
  s.thread_dur,
  _get_posted_from(s.arg_set_id) AS posted_from
FROM _chrome_scheduler_tasks AS k
JOIN slice AS s USING (id)
JOIN thread_track AS r ON r.id = s.track_id
JOIN thread AS t ON t.utid = r.utid
JOIN process AS p ON p.upid = t.upid
ORDER BY s.id;

-- The slice that may receive the message that a task handles: the outermost of Mojo's below it. A task that sends a message and waits for
-- the answer has the sending first, and handles none.
CREATE PERFETTO FUNCTION _get_descendant_mojo_slice_candidate(
  -- Row of slice: the task.
  slice_id LONG
)
RETURNS LONG AS
SELECT d.id
FROM descendant_slice($slice_id) AS d
WHERE d.category GLOB '*toplevel*' AND d.name NOT IN ('SimpleWatcher::OnHandleReady', 'MessagePipe peer closed')
ORDER BY d.depth, d.ts
LIMIT 1;

-- The name that a task has after the message that it handles; none for tasks without one.
CREATE PERFETTO FUNCTION _descendant_mojo_slice(
  -- Row of slice: the task.
  slice_id LONG
)
RETURNS TABLE(
  task_name STRING
) AS
SELECT printf('%s %s (hash=%d)', m.interface_name, m.message_type, m.ipc_hash) AS task_name
FROM _chrome_mojo_slices AS m
WHERE m.id = _get_descendant_mojo_slice_candidate($slice_id);

-- All tasks with their name and type: the outermost slices of threads' loops and of Java.
CREATE PERFETTO TABLE _chrome_tasks AS
WITH
  scheduler AS MATERIALIZED (SELECT id, name, posted_from FROM chrome_scheduler_tasks),
  mojo AS MATERIALIZED (
    SELECT t.id, m.task_name AS name
    FROM scheduler AS t
    JOIN _descendant_mojo_slice(t.id) AS m
    WHERE
      t.posted_from IN (
        'mojo/public/cpp/system/simple_watcher.cc:Notify',
        'mojo/public/cpp/system/simple_watcher.cc:ArmOrNotify',
        'mojo/public/cpp/bindings/lib/connector.cc:PostDispatchNextMessageFromPipe',
        'ipc/ipc_mojo_bootstrap.cc:Accept'
      )
  ),
  navigations AS MATERIALIZED (
    SELECT
      id,
      _human_readable_navigation_task_name(name) || ' (' || coalesce(_extract_frame_type(id), 'unknown frame type') || ')' AS name
    FROM mojo
    WHERE _human_readable_navigation_task_name(name) IS NOT NULL
  ),
  java_views AS MATERIALIZED (
    SELECT
      id, printf('%s(java_views=%s)', kind, java_views) AS name, _get_java_views_task_type(kind) AS task_type
    FROM _chrome_slices_with_java_views
  ),
  outermost AS (
    SELECT s.id, s.name
    FROM slice AS s
    WHERE
      _any_top_level_category(s.category)
      AND NOT EXISTS (SELECT 1 FROM ancestor_slice(s.id) AS a WHERE a.category GLOB '*toplevel*')
  )
SELECT
  o.id,
  coalesce(n.name, v.name, m.name, t.name, o.name) AS name,
  CASE
    WHEN n.id IS NOT NULL THEN 'navigation_task'
    WHEN v.id IS NOT NULL THEN v.task_type
    WHEN m.id IS NOT NULL THEN 'mojo'
    WHEN t.id IS NOT NULL THEN 'scheduler'
    ELSE 'other'
  END AS task_type
FROM outermost AS o
LEFT JOIN navigations AS n ON n.id = o.id
LEFT JOIN java_views AS v ON v.id = o.id
LEFT JOIN mojo AS m ON m.id = o.id
LEFT JOIN scheduler AS t ON t.id = o.id
UNION ALL
SELECT s.id, s.name, 'java'
FROM slice AS s
WHERE
  _java_not_top_level_category(s.category)
  AND NOT EXISTS (SELECT 1 FROM ancestor_slice(s.id) AS a WHERE a.category GLOB '*toplevel*' OR a.category GLOB '*Java*')
ORDER BY 1;

-- Those, and what threads of Chrome do outside of them: the loop of the application, views. A task is named after the message
-- that it handles, and after the views that it draws. Tasks of a thread do not overlap.
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
  k.id, k.name, k.task_type, t.name AS thread_name, t.utid, p.name AS process_name, t.upid, s.ts, s.dur, s.track_id, s.category,
  s.arg_set_id, s.thread_ts, s.thread_dur, k.name AS full_name
FROM _chrome_tasks AS k
JOIN slice AS s ON s.id = k.id
JOIN thread_track AS r ON r.id = s.track_id
JOIN thread AS t ON t.utid = r.utid
JOIN process AS p ON p.upid = t.upid;
