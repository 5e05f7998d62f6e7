-- Whether a phone was being charged.

INCLUDE PERFETTO MODULE counters.intervals;

-- The spans in which it stayed as it was.
CREATE PERFETTO TABLE android_charging_states(
  -- Row of counter.
  id LONG,
  -- When the charging state began.
  ts TIMESTAMP,
  -- Duration of the charging state in nanoseconds.
  dur DURATION,
  -- charging, discharging, not-charging, full or unknown.
  short_charging_state STRING,
  -- The same in a sentence.
  charging_state STRING
) AS
SELECT
  i.id,
  i.ts,
  i.dur,
  CASE i.value WHEN 2 THEN 'charging' WHEN 3 THEN 'discharging' WHEN 4 THEN 'not-charging' WHEN 5 THEN 'full' ELSE 'unknown' END
    AS short_charging_state,
  CASE i.value
    WHEN 2 THEN 'Charging'
    WHEN 3 THEN 'Discharging'
    WHEN 4 THEN 'Not charging'
    WHEN 5 THEN 'Full'
    ELSE 'unknown'
  END AS charging_state
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, c.track_id, c.value
  FROM counter AS c
  JOIN track AS t ON t.id = c.track_id
  WHERE t.name = 'BatteryStatus' OR t.type = 'battery_status'
)) AS i;
