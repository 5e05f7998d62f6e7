-- Whether a phone's screen was on.

INCLUDE PERFETTO MODULE counters.intervals;

-- The spans in which it stayed as it was.
CREATE PERFETTO TABLE android_screen_state(
  -- Row of counter.
  id ID,
  -- When the state of the screen began.
  ts TIMESTAMP,
  -- Duration of the state of the screen in nanoseconds.
  dur DURATION,
  -- off, on, doze or unknown.
  simple_screen_state STRING,
  -- The same, with the two kinds of doze apart.
  short_screen_state STRING,
  -- The same in a sentence.
  screen_state STRING
) AS
SELECT
  i.id,
  i.ts,
  i.dur,
  CASE i.value WHEN 1 THEN 'off' WHEN 2 THEN 'on' ELSE iif(i.value IN (3, 4), 'doze', 'unknown') END AS simple_screen_state,
  CASE i.value WHEN 1 THEN 'off' WHEN 2 THEN 'on' WHEN 3 THEN 'doze' WHEN 4 THEN 'doze-suspend' ELSE 'unknown' END
    AS short_screen_state,
  CASE i.value
    WHEN 1 THEN 'Screen off'
    WHEN 2 THEN 'Screen on'
    WHEN 3 THEN 'Always-on display (doze)'
    WHEN 4 THEN 'Always-on display (doze suspend)'
    ELSE 'unknown'
  END AS screen_state
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, c.track_id, c.value
  FROM counter AS c
  JOIN track AS t ON t.id = c.track_id
  WHERE t.name = 'ScreenState' OR t.type = 'screen_state'
)) AS i;
