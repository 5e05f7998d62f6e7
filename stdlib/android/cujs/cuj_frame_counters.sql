-- What processes counted of the frames of their critical user journeys, told at the end of each.

INCLUDE PERFETTO MODULE android.cujs.base;

-- Callbacks that came too late, as marked on the journeys' tracks: (upid, cuj_slice_name, ts, marker_name).
CREATE PERFETTO TABLE _marker_missed_callback AS
SELECT upid, cuj_slice_name, ts, marker_name FROM _cuj_marks WHERE marker_name GLOB '*FT#Missed*';

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

-- Counters "J<NAME>#COUNTER": (ts, upid, cuj_name, counter_name, value).
CREATE PERFETTO TABLE _android_jank_cuj_counter AS
SELECT
  c.ts,
  t.upid,
  regexp_extract(t.name, '^J<(.*)>#') AS cuj_name,
  regexp_extract(t.name, '>#(.*)$') AS counter_name,
  cast_int!(c.value) AS value
FROM process_counter_track AS t
JOIN counter AS c ON c.track_id = t.id
WHERE t.name GLOB 'J<*>#*' AND t.upid IN (SELECT upid FROM android_jank_cuj)
ORDER BY c.ts;

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
FROM _android_jank_cuj_counter
WHERE
  cuj_name = $cuj_name AND counter_name = $counter_name AND ts >= $ts_min AND ts <= coalesce($ts_max, ts)
ORDER BY ts
LIMIT 1;

-- All counters of each journey. They are told after its end, by applications other than the system's up to 4 ms before, and
-- not later than the next journey of that name in the process ends. Weights are told in thousandths, times in ms.
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
      lead(ts_end) OVER (PARTITION BY upid, cuj_name ORDER BY ts_end) AS ts_max
    FROM android_jank_cuj
  ),
  firsts AS (
    SELECT w.cuj_id, k.counter_name, k.value, row_number() OVER (PARTITION BY w.cuj_id, k.counter_name ORDER BY k.ts) AS n
    FROM windows AS w
    JOIN _android_jank_cuj_counter AS k
      ON k.upid = w.upid AND k.cuj_name = w.cuj_name AND k.ts >= w.ts_min AND k.ts <= coalesce(w.ts_max, k.ts)
  ),
  missed AS (
    SELECT w.cuj_id, sum(m.marker_name GLOB '*SF*') AS sf, sum(m.marker_name GLOB '*HWUI*') AS hwui
    FROM windows AS w
    JOIN _marker_missed_callback AS m
      ON m.cuj_slice_name = w.cuj_slice_name
      AND coalesce(m.upid, w.upid) = w.upid
      AND m.ts >= w.ts_min
      AND m.ts <= coalesce(w.ts_max, m.ts)
    GROUP BY w.cuj_id
  )
SELECT
  w.cuj_id,
  w.cuj_name,
  w.upid,
  w.state,
  max(iif(f.counter_name = 'totalFrames', f.value, NULL)) AS total_frames,
  max(iif(f.counter_name = 'missedFrames', f.value, NULL)) AS missed_frames,
  max(iif(f.counter_name = 'missedAppFrames', f.value, NULL)) AS missed_app_frames,
  max(iif(f.counter_name = 'missedSfFrames', f.value, NULL)) AS missed_sf_frames,
  max(iif(f.counter_name = 'maxSuccessiveMissedFrames', f.value, NULL)) AS missed_frames_max_successive,
  max(iif(f.counter_name = 'totalAnimTime', f.value, NULL)) AS anim_duration_ms,
  max(iif(f.counter_name = 'weightedJank', f.value / 1000.0, NULL)) AS weighted_missed_frames,
  max(iif(f.counter_name = 'weightedAppJank', f.value / 1000.0, NULL)) AS weighted_missed_app_frames,
  max(iif(f.counter_name = 'weightedSfJank', f.value / 1000.0, NULL)) AS weighted_missed_sf_frames,
  max(iif(f.counter_name = 'maxFrameTimeMillis', f.value * 1000000, NULL)) AS frame_dur_max,
  coalesce(max(m.sf), 0) AS sf_callback_missed_frames,
  coalesce(max(m.hwui), 0) AS hwui_callback_missed_frames
FROM windows AS w
LEFT JOIN firsts AS f ON f.cuj_id = w.cuj_id AND f.n = 1
LEFT JOIN missed AS m ON m.cuj_id = w.cuj_id
GROUP BY w.cuj_id;
