-- Windows of time to add power up in.

INCLUDE PERFETTO MODULE android.startup.startups;

-- From a slice wattson_start to the next wattson_stop.
CREATE PERFETTO VIEW wattson_window_markers(
  -- Start.
  ts TIMESTAMP,
  -- Length.
  dur DURATION,
  -- Number of the window, from 1.
  period_id LONG
) AS
SELECT
  a.ts,
  (SELECT min(b.ts) FROM slice AS b WHERE b.name = 'wattson_stop' AND b.ts > a.ts) - a.ts AS dur,
  row_number() OVER (ORDER BY a.ts) AS period_id
FROM slice AS a
WHERE a.name = 'wattson_start';

-- The whole trace.
CREATE PERFETTO VIEW wattson_window_trace(
  -- Start.
  ts TIMESTAMP,
  -- Length.
  dur DURATION,
  -- Number of the window, from 1.
  period_id LONG
) AS
SELECT trace_start() AS ts, trace_dur() AS dur, 1 AS period_id;

-- Starts of applications.
CREATE PERFETTO VIEW wattson_window_app_startup(
  -- Start.
  ts TIMESTAMP,
  -- Length.
  dur DURATION,
  -- Number of the start.
  period_id LONG
) AS
SELECT ts, dur, startup_id AS period_id FROM android_startups;

-- Slices that atrace has for the whole test.
CREATE PERFETTO VIEW wattson_window_atrace_apps(
  -- Start.
  ts TIMESTAMP,
  -- Length.
  dur DURATION,
  -- Number of the window, from 1.
  period_id LONG
) AS
SELECT ts, dur, row_number() OVER (ORDER BY ts) AS period_id FROM slice WHERE name GLOB 'wattson:*';
