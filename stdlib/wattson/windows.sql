-- Windows of time to add power up in.

INCLUDE PERFETTO MODULE android.cujs.base;
INCLUDE PERFETTO MODULE android.startup.startups;
INCLUDE PERFETTO MODULE wattson.utils;

-- From the first slice wattson_start to the last wattson_stop.
CREATE PERFETTO VIEW wattson_window_markers(
  -- When the window began.
  ts TIMESTAMP,
  -- Duration of the window in nanoseconds.
  dur DURATION,
  -- Number of the window: 1.
  period_id LONG
) AS
SELECT ts, dur, 1 AS period_id FROM _wattson_markers_window;

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

-- Interactions that Android measures (CUJ).
CREATE PERFETTO VIEW wattson_window_atrace_apps(
  -- When the interaction began.
  ts TIMESTAMP,
  -- Duration of the interaction in nanoseconds.
  dur DURATION,
  -- Number of the interaction.
  period_id LONG
) AS
SELECT ts, dur, cuj_id AS period_id FROM android_jank_cuj;
