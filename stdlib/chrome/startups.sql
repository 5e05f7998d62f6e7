-- Starts of Chrome.

INCLUDE PERFETTO MODULE slices.with_context;

-- Starts, those without anything to see, too: one begins where its time to the first visible content does, else with its activity.
CREATE PERFETTO VIEW _startup_start_events AS
WITH
  begun AS (
    SELECT extract_arg(arg_set_id, 'startup.activity_id') AS activity_id, ts, upid AS browser_upid
    FROM thread_slice
    WHERE name = 'Startup.ActivityStart'
  ),
  seen AS (
    SELECT extract_arg(arg_set_id, 'startup.activity_id') AS activity_id, ts, dur, upid AS browser_upid
    FROM process_slice
    WHERE name = 'Startup.TimeToFirstVisibleContent2'
  ),
  activities AS (
    SELECT DISTINCT activity_id, browser_upid
    FROM (SELECT activity_id, browser_upid FROM begun UNION ALL SELECT activity_id, browser_upid FROM seen)
  )
SELECT
  a.activity_id,
  'Startup' AS name,
  coalesce(s.ts, b.ts) AS startup_begin_ts,
  s.ts + s.dur AS first_visible_content_ts,
  a.browser_upid
FROM activities AS a
LEFT JOIN seen AS s USING (activity_id, browser_upid)
LEFT JOIN begun AS b USING (activity_id, browser_upid);

-- What starts were caused by; told behind their beginning, under the same number of the activity.
CREATE PERFETTO VIEW _launch_causes AS
SELECT
  extract_arg(arg_set_id, 'startup.activity_id') AS activity_id,
  extract_arg(arg_set_id, 'startup.launch_cause') AS launch_cause,
  upid AS browser_upid
FROM thread_slice
WHERE name = 'Startup.LaunchCause';

-- From the first thing known of a start to the first thing seen.
CREATE PERFETTO TABLE chrome_startups(
  -- Number of the start.
  id LONG,
  -- Number of the activity.
  activity_id LONG,
  -- Always 'Startup'.
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
  row_number() OVER (ORDER BY e.startup_begin_ts) AS id,
  e.activity_id,
  e.name,
  e.startup_begin_ts,
  e.first_visible_content_ts,
  c.launch_cause,
  e.browser_upid
FROM _startup_start_events AS e
LEFT JOIN _launch_causes AS c USING (activity_id, browser_upid);
