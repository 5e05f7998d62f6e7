-- Whether a phone was being charged.

INCLUDE PERFETTO MODULE counters.intervals;
INCLUDE PERFETTO MODULE intervals.fill_gaps;

-- What the values of the counter stand for.
CREATE PERFETTO TABLE _charging_state_names AS
WITH
  names(value, short_charging_state, charging_state) AS (
    VALUES
      (2, 'charging', 'Charging'),
      (3, 'discharging', 'Discharging'),
      (4, 'not_charging', 'Not charging'),
      (5, 'full', 'Full')
  )
SELECT value, short_charging_state, charging_state FROM names;

-- The spans of the counter.
CREATE PERFETTO TABLE _charging_state_spans AS
SELECT i.ts, i.dur, n.short_charging_state, n.charging_state
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, 0 AS track_id, c.value
  FROM counter AS c
  JOIN counter_track AS t ON t.id = c.track_id
  WHERE t.name = 'BatteryStatus'
)) AS i
LEFT JOIN _charging_state_names AS n ON n.value = i.value
WHERE i.dur > 0;

-- The spans in which it stayed as it was, from the start of the trace to its end.
CREATE PERFETTO TABLE android_charging_states(
  -- Number of the span.
  id LONG,
  -- When the charging state began.
  ts TIMESTAMP,
  -- Duration of the charging state in nanoseconds.
  dur DURATION,
  -- charging, discharging, not_charging, full or unknown.
  short_charging_state STRING,
  -- The same in words.
  charging_state STRING
) AS
SELECT
  row_number() OVER () AS id,
  ts,
  dur,
  coalesce(short_charging_state, 'unknown') AS short_charging_state,
  coalesce(charging_state, 'Unknown') AS charging_state
FROM _intervals_fill_gaps!((NULL), (short_charging_state, charging_state), _charging_state_spans);
