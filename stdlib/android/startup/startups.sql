-- Starts of applications.

INCLUDE PERFETTO MODULE android.process_metadata;
INCLUDE PERFETTO MODULE android.startup.startups_maxsdk28;
INCLUDE PERFETTO MODULE android.startup.startups_minsdk29;
INCLUDE PERFETTO MODULE android.startup.startups_minsdk33;
INCLUDE PERFETTO MODULE android.version;
INCLUDE PERFETTO MODULE slices.with_context;

-- Which of the three ways to mark starts the recording has; what is in it decides where it does not tell the version.
CREATE PERFETTO FUNCTION _startup_marks_since()
RETURNS LONG AS
SELECT
  CASE
    WHEN _android_sdk_version() IS NOT NULL THEN _android_sdk_version()
    WHEN EXISTS (SELECT 1 FROM slice WHERE name GLOB 'launchingActivity#*:*') THEN 33
    WHEN EXISTS (SELECT 1 FROM slice WHERE name GLOB 'MetricsLogger:*') THEN 29
    ELSE 28
  END;

-- The starts by those marks; up to Android 12 they are numbered from 0.
CREATE PERFETTO TABLE _android_startups_raw AS
SELECT startup_id, ts, ts_end, dur, dur_without_trampoline, package, startup_type, machine_id
FROM _startups_minsdk33
WHERE _startup_marks_since() >= 33
UNION ALL
SELECT _auto_id AS startup_id, ts, ts_end, dur, dur AS dur_without_trampoline, package, startup_type, machine_id
FROM _startups_minsdk29
WHERE _startup_marks_since() BETWEEN 29 AND 32
UNION ALL
SELECT _auto_id AS startup_id, ts, ts_end, dur, dur AS dur_without_trampoline, package, startup_type, machine_id
FROM _startups_maxsdk28
WHERE _startup_marks_since() <= 28;

-- Marks that tell how an application started, in its main thread.
CREATE PERFETTO TABLE _startup_indicator_slices AS
SELECT s.ts, s.name, t.utid
FROM slice AS s
JOIN thread_track AS t ON t.id = s.track_id
WHERE s.name IN ('bindApplication', 'activityStart', 'activityResume');

-- How many of those marks of a name a thread made in a time.
CREATE PERFETTO FUNCTION _startup_indicator_slice_count(
  -- The time's start.
  start_ts TIMESTAMP,
  -- Its end; what begins then does not count.
  end_ts TIMESTAMP,
  -- The thread.
  utid JOINID(thread.id),
  -- The name.
  name STRING
)
RETURNS LONG AS
SELECT count()
FROM _startup_indicator_slices
WHERE utid = $utid AND name = $name AND ts >= $start_ts AND ts < $end_ts;

-- The processes that came to show an activity in each start; a process that died and was started again makes two. Without a list
-- of packages, processes whose name begins with the package's belong to it.
CREATE PERFETTO TABLE android_startup_processes(
  -- The start.
  startup_id JOINID(android_startups.startup_id),
  -- Its process.
  upid JOINID(process.id),
  -- Number of the process.
  pid LONG,
  -- 'cold', 'warm' or 'hot': as marked, or else by what the main thread did.
  startup_type STRING
) AS
WITH
  candidates AS (
    SELECT r._auto_id AS start_row, r.startup_id, r.ts, r.ts_end, r.startup_type, p.upid, p.pid
    FROM _android_startups_raw AS r
    JOIN android_process_metadata AS p
      ON p.package_name = r.package
      OR (NOT EXISTS (SELECT 1 FROM package_list) AND p.process_name GLOB r.package || '*')
    JOIN process AS m ON m.upid = p.upid AND m.machine_id = r.machine_id
  ),
  seen AS (
    SELECT
      c.start_row,
      c.startup_id,
      c.upid,
      c.pid,
      c.startup_type,
      max(i.name = 'bindApplication') AS bound,
      max(i.name = 'activityStart') AS started
    FROM candidates AS c
    JOIN thread AS t ON t.upid = c.upid AND t.is_main_thread
    JOIN _startup_indicator_slices AS i ON i.utid = t.utid AND i.ts >= c.ts AND i.ts < c.ts_end
    GROUP BY c.start_row, c.upid
    HAVING max(i.name = 'activityResume')
  )
SELECT
  startup_id,
  upid,
  pid,
  coalesce(startup_type, CASE WHEN bound AND started THEN 'cold' WHEN started THEN 'warm' ELSE 'hot' END) AS startup_type
FROM seen
ORDER BY start_row, upid;

-- The starts, one row a number.
CREATE PERFETTO VIEW android_startups(
  -- Number of the start.
  startup_id ID,
  -- When it began.
  ts TIMESTAMP,
  -- When it ended.
  ts_end TIMESTAMP,
  -- How long it took.
  dur DURATION,
  -- The same without an activity of another package that only opened the one that was to be seen (from Android 13 on).
  dur_without_trampoline DURATION,
  -- The application's package.
  package STRING,
  -- 'cold', 'warm' or 'hot', where known.
  startup_type STRING
) AS
SELECT
  r.startup_id,
  r.ts,
  r.ts_end,
  r.dur,
  r.dur_without_trampoline,
  r.package,
  coalesce(r.startup_type, max(p.startup_type)) AS startup_type
FROM _android_startups_raw AS r
LEFT JOIN android_startup_processes AS p USING (startup_id)
GROUP BY r.startup_id;

-- Threads of the processes of each start.
CREATE PERFETTO VIEW android_startup_threads(
  -- The start of the application: startup_id of android_startups.
  startup_id JOINID(android_startups.startup_id),
  -- When the startup began.
  ts TIMESTAMP,
  -- Duration of the startup in nanoseconds.
  dur DURATION,
  -- Row of process.
  upid JOINID(process.id),
  -- The kernel's number of the process.
  pid LONG,
  -- Row of thread.
  utid JOINID(thread.id),
  -- The kernel's number of the thread.
  tid LONG,
  -- Name of the thread.
  thread_name STRING,
  -- Is it the process's first thread?
  is_main_thread BOOL
) AS
SELECT
  r.startup_id, r.ts, r.dur, p.upid, p.pid, t.utid, t.tid, t.name AS thread_name, t.is_main_thread
FROM android_startups AS r
JOIN android_startup_processes AS p USING (startup_id)
JOIN thread AS t USING (upid);

-- Slices of those threads while the application started.
CREATE PERFETTO VIEW android_thread_slices_for_all_startups(
  -- Start of the launch.
  startup_ts TIMESTAMP,
  -- End of the launch.
  startup_ts_end TIMESTAMP,
  -- The start of the application: startup_id of android_startups.
  startup_id JOINID(android_startups.startup_id),
  -- Row of thread.
  utid JOINID(thread.id),
  -- The kernel's number of the thread.
  tid LONG,
  -- Name of the thread.
  thread_name STRING,
  -- Is it the process's first thread?
  is_main_thread BOOL,
  -- Details: the set of args.
  arg_set_id ARGSETID,
  -- Row of slice.
  slice_id JOINID(slice.id),
  -- Name of the slice.
  slice_name STRING,
  -- Start of the slice.
  slice_ts TIMESTAMP,
  -- Length of the slice.
  slice_dur DURATION
) AS
SELECT
  r.ts AS startup_ts,
  r.ts + r.dur AS startup_ts_end,
  r.startup_id,
  r.utid,
  r.tid,
  r.thread_name,
  r.is_main_thread,
  s.arg_set_id,
  s.id AS slice_id,
  s.name AS slice_name,
  s.ts AS slice_ts,
  s.dur AS slice_dur
FROM android_startup_threads AS r
JOIN thread_slice AS s USING (utid)
WHERE s.ts BETWEEN r.ts AND r.ts + r.dur;

-- Verification of classes.
CREATE PERFETTO VIEW android_class_loading_for_startup(
  -- Row of slice.
  slice_id JOINID(slice.id),
  -- The start of the application: startup_id of android_startups.
  startup_id JOINID(android_startups.startup_id),
  -- Name of the slice.
  slice_name STRING,
  -- Start of the slice.
  slice_ts TIMESTAMP,
  -- Length of the slice.
  slice_dur DURATION,
  -- Name of the thread.
  thread_name STRING,
  -- The kernel's number of the thread.
  tid LONG,
  -- Details: the set of args.
  arg_set_id ARGSETID
) AS
SELECT slice_id, startup_id, slice_name, slice_ts, slice_dur, thread_name, tid, arg_set_id
FROM android_thread_slices_for_all_startups
WHERE slice_name GLOB 'L*;';

-- Slices of a start by name; * stands for anything.
CREATE PERFETTO FUNCTION android_slices_for_startup_and_slice_name(
  -- The start of the application: startup_id of android_startups.
  startup_id JOINID(android_startups.startup_id),
  -- Pattern of the names, as GLOB takes it.
  slice_name STRING
)
RETURNS TABLE(
  -- Row of slice.
  slice_id JOINID(slice.id),
  -- Name of the slice.
  slice_name STRING,
  -- Start of the slice.
  slice_ts TIMESTAMP,
  -- Length of the slice.
  slice_dur DURATION,
  -- Name of the thread.
  thread_name STRING,
  -- The kernel's number of the thread.
  tid LONG,
  -- Details: the set of args.
  arg_set_id ARGSETID
) AS
SELECT s.slice_id, s.slice_name, s.slice_ts, s.slice_dur, s.thread_name, s.tid, s.arg_set_id
FROM android_thread_slices_for_all_startups AS s
WHERE s.startup_id = $startup_id AND s.slice_name GLOB $slice_name;

-- Calls of other processes that took longer than the threshold.
CREATE PERFETTO FUNCTION android_binder_transaction_slices_for_startup(
  -- The start of the application: startup_id of android_startups.
  startup_id JOINID(android_startups.startup_id),
  -- Only those that take longer, in nanoseconds.
  threshold DOUBLE
)
RETURNS TABLE(
  -- Row of slice.
  id LONG,
  -- Length of the slice.
  slice_dur DURATION,
  -- Name of the thread.
  thread_name STRING,
  -- Name of the process that is called.
  process STRING,
  -- Details: the set of args.
  arg_set_id ARGSETID,
  -- Is it the process's first thread?
  is_main_thread BOOL
) AS
SELECT
  s.slice_id AS id,
  s.slice_dur,
  s.thread_name,
  p.name AS process,
  s.arg_set_id,
  s.is_main_thread
FROM android_thread_slices_for_all_startups AS s
JOIN thread AS t USING (utid)
JOIN process AS c USING (upid)
JOIN process AS p
  ON p.machine_id = c.machine_id AND p.pid = extract_arg(s.arg_set_id, 'destination process')
WHERE s.startup_id = $startup_id AND s.slice_name = 'binder transaction' AND s.slice_dur > $threshold;

-- All of such slices together.
CREATE PERFETTO FUNCTION android_sum_dur_for_startup_and_slice(
  -- The start of the application: startup_id of android_startups.
  startup_id JOINID(android_startups.startup_id),
  -- Name of the slice that waits.
  slice_name STRING
)
-- Nanoseconds; NULL: there are none.
RETURNS LONG AS
SELECT sum(slice_dur)
FROM android_thread_slices_for_all_startups
WHERE startup_id = $startup_id AND slice_name GLOB $slice_name;

-- The same for the main thread.
CREATE PERFETTO FUNCTION android_sum_dur_on_main_thread_for_startup_and_slice(
  -- The start of the application: startup_id of android_startups.
  startup_id JOINID(android_startups.startup_id),
  -- Name of the slice that waits.
  slice_name STRING
)
-- Nanoseconds; NULL: there are none.
RETURNS LONG AS
SELECT sum(slice_dur)
FROM android_thread_slices_for_all_startups
WHERE startup_id = $startup_id AND slice_name GLOB $slice_name AND is_main_thread;
