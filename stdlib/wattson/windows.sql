-- Windows of time to add power up in.

INCLUDE PERFETTO MODULE android.startup.startups;

-- From a slice wattson_start to the next wattson_stop.
CREATE PERFETTO VIEW wattson_window_markers(
  -- When the window began.
  ts TIMESTAMP,
  -- Duration of the window in nanoseconds.
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
  -- When the trace began.
  ts TIMESTAMP,
  -- Duration of the trace in nanoseconds.
  dur DURATION,
  -- Number of the window, from 1.
  period_id LONG
) AS
SELECT trace_start() AS ts, trace_dur() AS dur, 1 AS period_id;

-- Starts of applications.
CREATE PERFETTO VIEW wattson_window_app_startup(
  -- When the startup began.
  ts TIMESTAMP,
  -- Duration of the startup in nanoseconds.
  dur DURATION,
  -- Number of the start.
  period_id LONG
) AS
SELECT ts, dur, startup_id AS period_id FROM android_startups;

-- Slices that atrace has for the whole test.
CREATE PERFETTO VIEW wattson_window_atrace_apps(
  -- When the slice began.
  ts TIMESTAMP,
  -- Duration of the slice in nanoseconds.
  dur DURATION,
  -- Number of the window, from 1.
  period_id LONG
) AS
SELECT ts, dur, row_number() OVER (ORDER BY ts) AS period_id FROM slice WHERE name GLOB 'wattson:*';
