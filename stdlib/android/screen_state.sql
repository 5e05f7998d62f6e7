-- Whether a phone's screen was on.

INCLUDE PERFETTO MODULE counters.intervals;
INCLUDE PERFETTO MODULE intervals.fill_gaps;

-- What the values of the counter stand for.
CREATE PERFETTO TABLE _screen_state_names AS
WITH
  names(value, simple_screen_state, short_screen_state, screen_state) AS (
    VALUES
      (1, 'off', 'off', 'Screen off'),
      (2, 'on', 'on', 'Screen on'),
      (3, 'doze', 'doze', 'Always-on display (doze)'),
      (4, 'doze', 'doze-suspend', 'Always-on display (doze-suspend)'),
      (5, 'on', 'on-vr', 'Screen on (VR)'),
      (6, 'on', 'on-suspend', 'Screen on (suspend)')
  )
SELECT value, simple_screen_state, short_screen_state, screen_state FROM names;

-- The spans of the counter.
CREATE PERFETTO TABLE _screen_state_spans AS
SELECT i.ts, i.dur, n.simple_screen_state, n.short_screen_state, n.screen_state
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, 0 AS track_id, c.value
  FROM counter AS c
  JOIN counter_track AS t ON t.id = c.track_id
  WHERE t.name = 'ScreenState'
)) AS i
LEFT JOIN _screen_state_names AS n ON n.value = i.value
WHERE i.dur > 0;

-- The spans in which it stayed as it was, from the start of the trace to its end.
CREATE PERFETTO TABLE android_screen_state(
  -- Number of the span.
  id ID,
  -- When the state of the screen began.
  ts TIMESTAMP,
  -- Duration of the state of the screen in nanoseconds.
  dur DURATION,
  -- off, on, doze or unknown.
  simple_screen_state STRING,
  -- The same, with the kinds of on and doze apart.
  short_screen_state STRING,
  -- The same in words.
  screen_state STRING
) AS
SELECT
  row_number() OVER () AS id,
  ts,
  dur,
  coalesce(simple_screen_state, 'unknown') AS simple_screen_state,
  coalesce(short_screen_state, 'unknown') AS short_screen_state,
  coalesce(screen_state, 'Unknown') AS screen_state
FROM _intervals_fill_gaps!((NULL), (simple_screen_state, short_screen_state, screen_state), _screen_state_spans);
