-- How deep a phone slept to save power.

INCLUDE PERFETTO MODULE counters.intervals;

-- The spans of a counter by its name: (id, ts, dur, value).
CREATE PERFETTO MACRO _doze_state(counter_name Expr)
RETURNS TableOrSubquery AS
(
  SELECT i.id, i.ts, i.dur, CAST(i.value AS INT) AS value
  FROM counter_leading_intervals!((
    SELECT c.id, c.ts, 0 AS track_id, c.value
    FROM counter AS c
    JOIN counter_track AS t ON t.id = c.track_id
    WHERE t.name = $counter_name
  )) AS i
);

-- The light kind: applications in the background wait, the phone may be carried.
CREATE PERFETTO TABLE android_light_idle_state(
  -- Row of counter.
  id LONG,
  -- When the light idle state began.
  ts TIMESTAMP,
  -- Duration of the light idle state in nanoseconds.
  dur DURATION,
  -- State of light doze.
  light_idle_state STRING
) AS
SELECT
  id,
  ts,
  dur,
  CASE value
    WHEN 0 THEN 'active'
    WHEN 1 THEN 'inactive'
    WHEN 4 THEN 'idle'
    WHEN 5 THEN 'waiting_for_network'
    WHEN 6 THEN 'idle_maintenance'
    WHEN 7 THEN 'override'
    ELSE 'unmapped'
  END AS light_idle_state
FROM _doze_state!('DozeLightState');

-- The deep kind: the phone lies still for long.
CREATE PERFETTO TABLE android_deep_idle_state(
  -- Row of counter.
  id LONG,
  -- When the deep idle state began.
  ts TIMESTAMP,
  -- Duration of the deep idle state in nanoseconds.
  dur DURATION,
  -- State of deep doze.
  deep_idle_state STRING
) AS
SELECT
  id,
  ts,
  dur,
  CASE value
    WHEN 0 THEN 'active'
    WHEN 1 THEN 'inactive'
    WHEN 2 THEN 'idle_pending'
    WHEN 3 THEN 'sensing'
    WHEN 4 THEN 'locating'
    WHEN 5 THEN 'idle'
    WHEN 6 THEN 'idle_maintenance'
    WHEN 7 THEN 'quick_doze_delay'
    ELSE 'unmapped'
  END AS deep_idle_state
FROM _doze_state!('DozeDeepState');
