-- What processes counted of the frames of their critical user journeys, told at the end of each.

INCLUDE PERFETTO MODULE android.cujs.base;

-- Callbacks that came too late, by the track that they are marked on: (cuj_slice_name, ts, marker_name).
CREATE PERFETTO VIEW _marker_missed_callback AS
SELECT t.name AS cuj_slice_name, s.ts, s.name AS marker_name
FROM slice AS s
JOIN track AS t ON t.id = s.track_id
WHERE s.name GLOB '*FT#Missed*';

-- How many of them a journey had between two moments; the second may be NULL.
CREATE PERFETTO FUNCTION _android_cuj_missed_vsyncs_for_callback(
  -- Name of the journey's slice.
  cuj_slice_name STRING,
  -- The first moment.
  ts_min TIMESTAMP,
  -- The last one.
  ts_max TIMESTAMP,
  -- What the marks look like: '*SF*', '*HWUI*'.
  callback_missed STRING
)
RETURNS LONG AS
SELECT count()
FROM _marker_missed_callback
WHERE
  cuj_slice_name = $cuj_slice_name
  AND marker_name GLOB $callback_missed
  AND ts >= $ts_min
  AND ts <= coalesce($ts_max, ts);

-- Counters "J<NAME>#COUNTER" of the processes that have journeys: (ts, upid, cuj_name, counter_name, value).
CREATE PERFETTO VIEW _android_jank_cuj_counter AS
SELECT
  c.ts,
  t.upid,
  str_split(str_split(t.name, '>#', 0), '<', 1) AS cuj_name,
  str_split(t.name, '#', 1) AS counter_name,
  cast_int!(c.value) AS value
FROM process_counter_track AS t
JOIN counter AS c ON c.track_id = t.id
WHERE t.name GLOB 'J<*>#*' AND t.upid IN (SELECT upid FROM android_jank_cuj);

-- The same, once for all journeys.
CREATE PERFETTO TABLE _android_jank_cuj_counter_values AS
SELECT * FROM _android_jank_cuj_counter ORDER BY ts;

CREATE PERFETTO INDEX _android_jank_cuj_counter_by_name
ON _android_jank_cuj_counter_values(cuj_name, counter_name);

-- The first value of a counter between two moments; the second may be NULL.
CREATE PERFETTO FUNCTION _android_jank_cuj_counter_value(
  -- The journey.
  cuj_name STRING,
  -- The counter.
  counter_name STRING,
  -- The first moment.
  ts_min TIMESTAMP,
  -- The last one.
  ts_max TIMESTAMP
)
RETURNS LONG AS
SELECT value
FROM _android_jank_cuj_counter_values
WHERE
  cuj_name = $cuj_name AND counter_name = $counter_name AND ts >= $ts_min AND ts <= coalesce($ts_max, ts)
ORDER BY ts
LIMIT 1;

-- All counters of each journey. They are told after its end, by applications other than the system's up to 4 ms before, and
-- not later than the next journey of that name ends. Weights are told in thousandths, times in ms.
CREATE PERFETTO TABLE _android_jank_cuj_counter_metrics AS
WITH
  windows AS (
    SELECT
      *,
      iif(
        process_name GLOB 'com.android.*' OR process_name = 'com.google.android.apps.nexuslauncher',
        ts_end,
        max(ts, ts_end - 4000000)
      ) AS ts_min,
      lead(ts_end) OVER (PARTITION BY cuj_name ORDER BY ts_end) AS ts_max
    FROM android_jank_cuj
  )
SELECT
  cuj_id,
  cuj_name,
  upid,
  state,
  _android_jank_cuj_counter_value(cuj_name, 'totalFrames', ts_min, ts_max) AS total_frames,
  _android_jank_cuj_counter_value(cuj_name, 'missedFrames', ts_min, ts_max) AS missed_frames,
  _android_jank_cuj_counter_value(cuj_name, 'missedAppFrames', ts_min, ts_max) AS missed_app_frames,
  _android_jank_cuj_counter_value(cuj_name, 'missedSfFrames', ts_min, ts_max) AS missed_sf_frames,
  _android_jank_cuj_counter_value(cuj_name, 'maxSuccessiveMissedFrames', ts_min, ts_max) AS missed_frames_max_successive,
  _android_jank_cuj_counter_value(cuj_name, 'totalAnimTime', ts_min, ts_max) AS anim_duration_ms,
  _android_jank_cuj_counter_value(cuj_name, 'weightedJank', ts_min, ts_max) / 1000.0 AS weighted_missed_frames,
  _android_jank_cuj_counter_value(cuj_name, 'weightedAppJank', ts_min, ts_max) / 1000.0 AS weighted_missed_app_frames,
  _android_jank_cuj_counter_value(cuj_name, 'weightedSfJank', ts_min, ts_max) / 1000.0 AS weighted_missed_sf_frames,
  _android_jank_cuj_counter_value(cuj_name, 'maxFrameTimeMillis', ts_min, ts_max) * 1000000 AS frame_dur_max,
  _android_cuj_missed_vsyncs_for_callback(cuj_slice_name, ts_min, ts_max, '*SF*') AS sf_callback_missed_frames,
  _android_cuj_missed_vsyncs_for_callback(cuj_slice_name, ts_min, ts_max, '*HWUI*') AS hwui_callback_missed_frames
FROM windows
ORDER BY cuj_name, ts_end;
