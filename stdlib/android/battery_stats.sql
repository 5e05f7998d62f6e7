-- What Android's battery statistics recorded: counters of states, and instants that begin ("+") and end ("-") events.

INCLUDE PERFETTO MODULE counters.intervals;

-- What the values of each counter stand for.
CREATE PERFETTO TABLE _battery_stats_values AS
WITH
  scales(name, words) AS (
    VALUES
      ('battery_stats.wifi_scan', '["inactive","active"]'),
      ('battery_stats.wifi_radio', '["inactive","active"]'),
      ('battery_stats.mobile_radio', '["inactive","active"]'),
      ('battery_stats.audio', '["inactive","active"]'),
      ('battery_stats.video', '["inactive","active"]'),
      ('battery_stats.camera', '["inactive","active"]'),
      ('battery_stats.power_save', '["inactive","active"]'),
      ('battery_stats.phone_in_call', '["inactive","active"]'),
      ('battery_stats.wifi', '["off","on"]'),
      ('battery_stats.phone_state', '["in","out","emergency","off"]'),
      ('battery_stats.phone_signal_strength', '["0/4","1/4","2/4","3/4","4/4"]'),
      ('battery_stats.wifi_signal_strength', '["0/4","1/4","2/4","3/4","4/4"]'),
      (
        'battery_stats.wifi_suppl',
        '["invalid","disconnected","disabled","inactive","scanning","authenticating","associating","associated","4-way-handshake","group-handshake","completed","dormant","uninitialized"]'
      ),
      (
        'battery_stats.data_conn',
        '["Out of service","2.5G (GPRS)","2.7G (EDGE)","3G (UMTS)","3G (CDMA)","3G (EVDO Rel 0)","3G (EVDO Rev A)","3G (LXRTT)","3.5G (HSDPA)","3.5G (HSUPA)","3.5G (HSPA)","2G (IDEN)","3G (EVDO Rev B)","4G (LTE)","3.5G (eHRPD)","3.7G (HSPA+)","2G (GSM)","3G (TD SCDMA)","Wifi calling (IWLAN)","4.5G (LTE CA)","5G (NR)","Emergency calls only","Other"]'
      )
  )
SELECT s.name, CAST(j.key AS INT) AS value, j.value AS word
FROM scales AS s
JOIN json_each(s.words) AS j;

-- The word for a value.
CREATE PERFETTO FUNCTION android_battery_stats_counter_to_string(
  -- Name of the track.
  track STRING,
  -- Value of the counter.
  value DOUBLE
)
-- The word; for tracks without words, the number itself.
RETURNS STRING AS
SELECT
  CASE
    WHEN EXISTS (SELECT 1 FROM _battery_stats_values WHERE name = $track)
      THEN coalesce((SELECT word FROM _battery_stats_values WHERE name = $track AND value = $value), 'unknown')
    ELSE CAST($value AS TEXT)
  END;

-- The spans of the counters.
CREATE PERFETTO VIEW android_battery_stats_state(
  -- When the state began.
  ts TIMESTAMP,
  -- Length; -1 when the trace ends before.
  dur DURATION,
  -- Length up to the end of the trace at most, never -1.
  safe_dur DURATION,
  -- The state that is told.
  track_name STRING,
  -- The state as a number.
  value LONG,
  -- The state in words.
  value_name STRING
) AS
WITH
  samples AS (
    SELECT c.ts, c.value, t.name, lead(c.ts) OVER (PARTITION BY t.name ORDER BY c.ts) AS next_ts
    FROM counter AS c
    JOIN counter_track AS t ON t.id = c.track_id
    WHERE t.name GLOB 'battery_stats.*'
  )
SELECT
  ts,
  coalesce(next_ts - ts, -1) AS dur,
  coalesce(next_ts, trace_end()) - ts AS safe_dur,
  name AS track_name,
  CAST(value AS INT) AS value,
  android_battery_stats_counter_to_string(name, value) AS value_name
FROM samples;

-- The spans of the events: from '+top=10215:"launcher"' to the next event of the same kind and text. An end without anything before it
-- is a span from the start of the trace.
CREATE PERFETTO VIEW android_battery_stats_event_slices(
  -- When the event began.
  ts TIMESTAMP,
  -- Length; -1 when it did not end.
  dur DURATION,
  -- Length up to the end of the trace at most, never -1.
  safe_dur DURATION,
  -- What the events are about.
  track_name STRING,
  -- Who or what it was, often a package.
  str_value STRING,
  -- Number of the event, often a uid.
  int_value LONG
) AS
WITH
  marks AS (
    SELECT s.ts, t.name AS track_name, substr(s.name, 1, 1) = '+' AS begins, str_split(s.name, '=', 1) AS key
    FROM slice AS s
    JOIN track AS t ON t.id = s.track_id
    WHERE t.name GLOB 'battery_stats.*' AND substr(s.name, 1, 1) IN ('+', '-')
  ),
  neighbours AS (
    SELECT *, lag(ts) OVER by_key AS last_ts, lead(ts) OVER by_key AS next_ts
    FROM marks
    WINDOW by_key AS (PARTITION BY track_name, key ORDER BY ts)
  ),
  spans AS (
    SELECT track_name, key, iif(begins, ts, trace_start()) AS ts, iif(begins, next_ts, ts) AS ts_end
    FROM neighbours
    WHERE begins OR last_ts IS NULL
  )
SELECT
  ts,
  coalesce(ts_end - ts, -1) AS dur,
  coalesce(ts_end, trace_end()) - ts AS safe_dur,
  track_name,
  str_split(key, '"', 1) AS str_value,
  cast_int!(str_split(key, ':', 0)) AS int_value
FROM spans;
