-- How long a car takes to change its user.

INCLUDE PERFETTO MODULE android.startup.startups;

-- From the start of the last user but 10 ("UserController.startUser-11-fg-start-mode-1") to the starts of applications,
-- each told by its package, and the stops of user 10 that ended after it.
CREATE PERFETTO TABLE android_auto_multiuser_timing(
  -- The user that is switched to.
  event_start_user_id STRING,
  -- Start of the switch.
  event_start_time LONG,
  -- End of what followed.
  event_end_time LONG,
  -- What followed.
  event_end_name STRING,
  -- Name of the slice that starts the user.
  event_start_name STRING,
  -- From the start to that end, in nanoseconds.
  duration LONG
) AS
WITH
  switch AS (
    SELECT name, ts, regexp_extract(name, 'startUser-([0-9]+)-') AS user_id
    FROM slice
    WHERE name GLOB 'UserController.startUser-*' AND NOT name GLOB 'UserController.startUser-10-*'
    ORDER BY ts DESC
    LIMIT 1
  ),
  ends AS (
    SELECT ts_end AS ts, package AS name FROM android_startups
    UNION
    SELECT ts + dur, name FROM slice WHERE name GLOB 'finishUserStopped-10*'
  )
SELECT
  s.user_id AS event_start_user_id,
  s.ts AS event_start_time,
  e.ts AS event_end_time,
  e.name AS event_end_name,
  s.name AS event_start_name,
  e.ts - s.ts AS duration
FROM switch AS s
JOIN ends AS e ON e.ts > s.ts
ORDER BY e.ts, e.name;

-- What user 10, the first one of a car, used of the processors from the switch to the ends of each name: runs that began
-- then, whole …
CREATE PERFETTO VIEW _android_auto_user_10_total_cpu_time AS
SELECT sum(r.dur) AS total_cpu_time, p.android_user_id AS user_id, e.event_end_name
FROM android_auto_multiuser_timing AS e
JOIN sched_slice AS r ON r.ts BETWEEN e.event_start_time AND e.event_end_time
JOIN thread USING (utid)
JOIN process AS p USING (upid)
WHERE p.android_user_id = 10
GROUP BY e.event_end_name;

-- … and of memory: by how much the sizes of its processes rose, in thousands of bytes. What they gave back is not taken off.
CREATE PERFETTO VIEW _android_auto_user_10_total_memory AS
WITH
  steps AS (
    SELECT
      e.event_end_name,
      p.name AS process_name,
      p.android_user_id AS user_id,
      c.value - lag(c.value) OVER (PARTITION BY p.name, e.event_end_name ORDER BY c.ts) AS rise
    FROM android_auto_multiuser_timing AS e
    JOIN counter AS c ON c.ts BETWEEN e.event_start_time AND e.event_end_time
    JOIN process_counter_track AS k ON k.id = c.track_id
    JOIN process AS p USING (upid)
    WHERE k.name = 'mem.rss' AND p.android_user_id = 10
  ),
  rises AS (
    SELECT event_end_name, user_id, sum(rise) / 1e3 AS kb
    FROM steps
    WHERE rise > 0
    GROUP BY event_end_name, process_name
  )
SELECT cast_int!(sum(kb)) AS total_memory_usage_kb, user_id, event_end_name
FROM rises
GROUP BY event_end_name;

-- The same with what processes of user 10 still used of the processors and memory meanwhile.
CREATE PERFETTO VIEW android_auto_multiuser_timing_with_previous_user_resource_usage(
  -- The user that is switched to.
  event_start_user_id STRING,
  -- Start of the switch.
  event_start_time LONG,
  -- End of what followed.
  event_end_time LONG,
  -- What followed.
  event_end_name STRING,
  -- Name of the slice that starts the user.
  event_start_name STRING,
  -- From the start to that end, in nanoseconds.
  duration LONG,
  -- 10; NULL: none of its processes ran.
  user_id LONG,
  -- CPU time of that user's processes, in nanoseconds: runs that began up to that end. Ends of one name are added up.
  total_cpu_time LONG,
  -- By how much the memory of those processes rose, in thousands of bytes. Ends of one name are added up; NULL: it did not.
  total_memory_usage_kb LONG
) AS
SELECT
  e.event_start_user_id,
  e.event_start_time,
  e.event_end_time,
  e.event_end_name,
  e.event_start_name,
  e.duration,
  u.user_id,
  u.total_cpu_time,
  m.total_memory_usage_kb
FROM android_auto_multiuser_timing AS e
LEFT JOIN _android_auto_user_10_total_cpu_time AS u USING (event_end_name)
LEFT JOIN _android_auto_user_10_total_memory AS m USING (event_end_name);
