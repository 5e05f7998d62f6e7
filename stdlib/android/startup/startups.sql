-- Starts of applications.

INCLUDE PERFETTO MODULE slices.with_context;

-- Launches that the system server marks: "launchingActivity#N:package" (Android 13 and later) and "launching: package".
CREATE PERFETTO TABLE _android_startups_raw AS
SELECT
  row_number() OVER (ORDER BY s.ts) - 1 AS startup_id,
  s.ts,
  s.ts + s.dur AS ts_end,
  s.dur,
  s.dur AS dur_without_trampoline,
  coalesce(
    regexp_extract(s.name, '^launchingActivity#[0-9]+:(.*):completed'),
    regexp_extract(s.name, '^launching: (.*)$')
  ) AS package,
  regexp_extract(s.name, ':completed-(.*):') AS startup_type
FROM slice AS s
WHERE s.dur >= 0 AND (s.name GLOB 'launching: *' OR s.name GLOB 'launchingActivity#*:completed*');

-- The processes of each start.
CREATE PERFETTO TABLE android_startup_processes(
  startup_id JOINID(android_startups.startup_id),
  upid JOINID(process.id),
  pid LONG,
  startup_type STRING
) AS
SELECT r.startup_id, p.upid, p.pid, coalesce(r.startup_type, iif(p.start_ts >= r.ts, 'cold', 'hot')) AS startup_type
FROM _android_startups_raw AS r
JOIN process AS p ON p.name = r.package OR p.name GLOB r.package || ':*'
WHERE coalesce(p.end_ts, r.ts) >= r.ts AND coalesce(p.start_ts, r.ts) <= r.ts_end;

-- The starts.
CREATE PERFETTO VIEW android_startups(
  startup_id ID,
  ts TIMESTAMP,
  ts_end TIMESTAMP,
  dur DURATION,
  dur_without_trampoline DURATION,
  package STRING,
  startup_type STRING
) AS
SELECT
  r.startup_id,
  r.ts,
  r.ts_end,
  r.dur,
  r.dur_without_trampoline,
  r.package,
  coalesce(
    r.startup_type,
    (SELECT p.startup_type FROM android_startup_processes AS p WHERE p.startup_id = r.startup_id LIMIT 1)
  ) AS startup_type
FROM _android_startups_raw AS r;

-- Threads of the processes of each start.
CREATE PERFETTO VIEW android_startup_threads(
  startup_id JOINID(android_startups.startup_id),
  ts TIMESTAMP,
  dur DURATION,
  upid JOINID(process.id),
  pid LONG,
  utid JOINID(thread.id),
  tid LONG,
  thread_name STRING,
  is_main_thread BOOL
) AS
SELECT
  r.startup_id, r.ts, r.dur, p.upid, p.pid, t.utid, t.tid, t.name AS thread_name, t.is_main_thread
FROM android_startups AS r
JOIN android_startup_processes AS p USING (startup_id)
JOIN thread AS t USING (upid);

-- Slices of those threads while the application started.
CREATE PERFETTO VIEW android_thread_slices_for_all_startups(
  startup_ts TIMESTAMP,
  startup_ts_end TIMESTAMP,
  startup_id JOINID(android_startups.startup_id),
  utid JOINID(thread.id),
  tid LONG,
  thread_name STRING,
  is_main_thread BOOL,
  arg_set_id ARGSETID,
  slice_id JOINID(slice.id),
  slice_name STRING,
  slice_ts TIMESTAMP,
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
  slice_id JOINID(slice.id),
  startup_id JOINID(android_startups.startup_id),
  slice_name STRING,
  slice_ts TIMESTAMP,
  slice_dur DURATION,
  thread_name STRING,
  tid LONG,
  arg_set_id ARGSETID
) AS
SELECT slice_id, startup_id, slice_name, slice_ts, slice_dur, thread_name, tid, arg_set_id
FROM android_thread_slices_for_all_startups
WHERE slice_name GLOB 'L*/*;';

-- Slices of a start by name; * stands for anything.
CREATE PERFETTO FUNCTION android_slices_for_startup_and_slice_name(
  startup_id JOINID(android_startups.startup_id),
  slice_name STRING
)
RETURNS TABLE(
  slice_id JOINID(slice.id),
  slice_name STRING,
  slice_ts TIMESTAMP,
  slice_dur DURATION,
  thread_name STRING,
  tid LONG,
  arg_set_id ARGSETID
) AS
SELECT s.slice_id, s.slice_name, s.slice_ts, s.slice_dur, s.thread_name, s.tid, s.arg_set_id
FROM android_thread_slices_for_all_startups AS s
WHERE s.startup_id = $startup_id AND s.slice_name GLOB $slice_name;

-- Calls of other processes that took longer than the threshold.
CREATE PERFETTO FUNCTION android_binder_transaction_slices_for_startup(
  startup_id JOINID(android_startups.startup_id),
  threshold DOUBLE
)
RETURNS TABLE(
  id LONG,
  slice_dur DURATION,
  thread_name STRING,
  process STRING,
  arg_set_id ARGSETID,
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
JOIN process AS p USING (upid)
WHERE s.startup_id = $startup_id AND s.slice_name GLOB 'binder transaction' AND s.slice_dur > $threshold;

-- All of such slices together.
CREATE PERFETTO FUNCTION android_sum_dur_for_startup_and_slice(
  startup_id JOINID(android_startups.startup_id),
  slice_name STRING
)
RETURNS LONG AS
SELECT sum(slice_dur)
FROM android_thread_slices_for_all_startups
WHERE startup_id = $startup_id AND slice_name GLOB $slice_name;

-- The same for the main thread.
CREATE PERFETTO FUNCTION android_sum_dur_on_main_thread_for_startup_and_slice(
  startup_id JOINID(android_startups.startup_id),
  slice_name STRING
)
RETURNS LONG AS
SELECT sum(slice_dur)
FROM android_thread_slices_for_all_startups
WHERE startup_id = $startup_id AND slice_name GLOB $slice_name AND is_main_thread;
