-- Starts of Chrome.

INCLUDE PERFETTO MODULE slices.with_context;

-- Slices of a start, by the number of its activity.
CREATE PERFETTO TABLE _chrome_startup_marks AS
SELECT
  id,
  name,
  ts,
  dur,
  extract_arg(arg_set_id, 'startup.activity_id') AS activity_id,
  extract_arg(arg_set_id, 'startup.launch_cause') AS launch_cause,
  upid
FROM thread_or_process_slice
WHERE name GLOB 'Startup.*';

-- What starts were caused by; told behind their beginning, under the same number of the activity.
CREATE PERFETTO VIEW _launch_causes AS
SELECT activity_id, launch_cause, ts, upid AS browser_upid
FROM _chrome_startup_marks
WHERE name = 'Startup.LaunchCause';

-- What starts begin with, those without anything to see, too: the first thing known of each.
CREATE PERFETTO VIEW _startup_start_events AS
SELECT activity_id, name, min(ts) AS ts, dur, upid AS browser_upid
FROM _chrome_startup_marks
WHERE name = 'Startup.ActivityStart' OR name GLOB 'Startup.TimeToFirstVisibleContent*'
GROUP BY upid, activity_id;

-- From the first thing known of a start to the first thing seen.
CREATE PERFETTO TABLE chrome_startups(
  -- Number of the start.
  id LONG,
  -- Number of the activity.
  activity_id LONG,
  -- Name of the slice that it begins with.
  name STRING,
  -- When it began.
  startup_begin_ts TIMESTAMP,
  -- When content was to be seen; NULL: not recorded.
  first_visible_content_ts TIMESTAMP,
  -- What it was started by.
  launch_cause STRING,
  -- The browser's process: row of process.
  browser_upid LONG
) AS
SELECT
  row_number() OVER (ORDER BY b.ts) AS id,
  b.activity_id,
  b.name,
  b.ts AS startup_begin_ts,
  (
    SELECT max(v.ts + v.dur)
    FROM _chrome_startup_marks AS v
    WHERE v.name GLOB 'Startup.TimeToFirstVisibleContent*' AND v.upid = b.browser_upid AND v.activity_id IS b.activity_id
  ) AS first_visible_content_ts,
  (
    SELECT c.launch_cause
    FROM _launch_causes AS c
    WHERE c.browser_upid = b.browser_upid AND c.activity_id IS b.activity_id
    ORDER BY c.ts
    LIMIT 1
  ) AS launch_cause,
  b.browser_upid AS browser_upid
FROM _startup_start_events AS b;
