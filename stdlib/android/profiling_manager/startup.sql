-- Cold starts in the cut traces that applications record of themselves.

INCLUDE PERFETTO MODULE android.profiling_manager.util;

-- To the end of the first frame (TTFF), and to when the application has said that it can be used (TTI).
CREATE PERFETTO TABLE android_profiling_manager_cold_startup(
  -- When the start of the application began.
  ts TIMESTAMP,
  -- Name of the event.
  name STRING,
  -- Duration of the start of the application in nanoseconds.
  dur DURATION,
  -- The point of the start that was reached.
  startup_checkpoint STRING
) AS
SELECT ts, 'app_startup_ttff' AS name, dur, 'TTFF' AS startup_checkpoint
FROM _android_generate_start_to_end_slices('bindApplication', 'Choreographer#doFrame [0-9]*', 1)
UNION ALL
SELECT ts, 'app_startup_tti', dur, 'TTI'
FROM _android_generate_start_to_end_slices('bindApplication', 'reportFullyDrawn*', 1);
