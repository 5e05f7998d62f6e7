-- Scrolls that stuttered, as version 3 of Chrome's measure sees it: frames that came later than one and a half frames of the
-- screen after the one before, though there was input for them.

INCLUDE PERFETTO MODULE chrome.event_latency;
INCLUDE PERFETTO MODULE chrome.metadata;
INCLUDE PERFETTO MODULE chrome.scroll_jank.scroll_jank_v3_cause;

-- Scrolls that were shown. What was not shown went into the frame of the last one that was.
CREATE PERFETTO TABLE chrome_presented_gesture_scrolls(
  -- The slice of its input.
  id LONG,
  -- When its input was made.
  ts TIMESTAMP,
  -- How long it took to be shown.
  dur DURATION,
  -- When the last input that went into it was made.
  last_presented_input_ts TIMESTAMP,
  -- Chrome's number of its input.
  scroll_update_id LONG,
  -- Its scroll.
  scroll_id LONG,
  -- When it was on the screen.
  presentation_timestamp LONG,
  -- Kind of its input.
  event_type STRING
) AS
WITH
  updates AS (
    SELECT *, sum(is_presented) OVER (ORDER BY ts, is_presented DESC, id) AS frame FROM chrome_gesture_scroll_updates
  ),
  lasts AS (SELECT frame, max(ts) AS last_presented_input_ts FROM updates GROUP BY frame)
SELECT
  u.id, u.ts, u.dur, l.last_presented_input_ts, u.scroll_update_id, u.scroll_id, u.presentation_timestamp, u.event_type
FROM updates AS u
JOIN lasts AS l USING (frame)
WHERE u.is_presented
ORDER BY u.ts;

-- How far the page moved with each input, as the compositor was told.
CREATE PERFETTO TABLE chrome_scroll_updates_with_deltas(
  -- Chrome's number of its input.
  scroll_update_id LONG,
  -- How far the page moved, in pixels.
  delta_y DOUBLE
) AS
SELECT
  extract_arg(arg_set_id, 'scroll_deltas.trace_id') AS scroll_update_id,
  extract_arg(arg_set_id, 'scroll_deltas.provided_to_compositor_delta_y') AS delta_y
FROM slice
WHERE name = 'InputHandlerProxy::HandleGestureScrollUpdate_Result';

-- Frames that were on the screen.
CREATE PERFETTO TABLE chrome_full_frame_view(
  -- The slice of its input.
  id LONG,
  -- When its input was made.
  ts TIMESTAMP,
  -- When the last input that went into it was made.
  last_presented_input_ts TIMESTAMP,
  -- Its scroll.
  scroll_id LONG,
  -- Chrome's number of its input.
  scroll_update_id LONG,
  -- The slice of its input.
  event_latency_id LONG,
  -- How long it took to be shown.
  dur DURATION,
  -- When it was on the screen.
  presentation_timestamp LONG
) AS
SELECT
  id,
  ts,
  last_presented_input_ts,
  scroll_id,
  scroll_update_id,
  id AS event_latency_id,
  dur,
  presentation_timestamp
FROM chrome_presented_gesture_scrolls
WHERE
  presentation_timestamp IS NOT NULL
  AND event_type IN (
    'FIRST_GESTURE_SCROLL_UPDATE', 'GESTURE_SCROLL_UPDATE', 'INERTIAL_GESTURE_SCROLL_UPDATE', 'GESTURE_PINCH_UPDATE'
  );

-- The same with the movement.
CREATE PERFETTO TABLE chrome_full_frame_delta_view(
  -- The slice of its input.
  id LONG,
  -- When its input was made.
  ts TIMESTAMP,
  -- Its scroll.
  scroll_id LONG,
  -- Chrome's number of its input.
  scroll_update_id LONG,
  -- When the last input that went into it was made.
  last_presented_input_ts TIMESTAMP,
  -- How far the page moved, in pixels.
  delta_y DOUBLE,
  -- The slice of its input.
  event_latency_id LONG,
  -- How long it took to be shown.
  dur DURATION,
  -- When it was on the screen.
  presentation_timestamp LONG
) AS
SELECT
  f.id,
  f.ts,
  f.scroll_id,
  f.scroll_update_id,
  f.last_presented_input_ts,
  d.delta_y,
  f.event_latency_id,
  f.dur,
  f.presentation_timestamp
FROM chrome_full_frame_view AS f
LEFT JOIN chrome_scroll_updates_with_deltas AS d USING (scroll_update_id);

-- What was on the screen at the same moment is one frame.
CREATE PERFETTO TABLE chrome_merged_frame_view(
  -- The slice of its input.
  id LONG,
  -- When the last input that went into it was made.
  max_start_ts TIMESTAMP,
  -- When the first input that went into it was made.
  min_start_ts TIMESTAMP,
  -- Its scroll.
  scroll_id LONG,
  -- Chrome's number of its input.
  scroll_update_id LONG,
  -- Numbers of all its inputs, with commas.
  encapsulated_scroll_ids STRING,
  -- How far the page moved with all of them, in pixels.
  total_delta DOUBLE,
  -- How far it moved with each, with commas.
  segregated_delta_y STRING,
  -- The slice of its input.
  event_latency_id LONG,
  -- How long it took to be shown.
  dur DURATION,
  -- When it was on the screen.
  presentation_timestamp LONG
) AS
SELECT
  id,
  max(last_presented_input_ts) AS max_start_ts,
  min(ts) AS min_start_ts,
  scroll_id,
  scroll_update_id,
  group_concat(scroll_update_id, ',') AS encapsulated_scroll_ids,
  sum(delta_y) AS total_delta,
  group_concat(delta_y, ',') AS segregated_delta_y,
  event_latency_id,
  max(dur) AS dur,
  presentation_timestamp
FROM chrome_full_frame_delta_view
GROUP BY presentation_timestamp
ORDER BY presentation_timestamp;

-- The same with what was between each and the one before of its scroll.
CREATE PERFETTO TABLE chrome_frame_info_with_delay(
  -- The slice of its input.
  id LONG,
  -- When the last input that went into it was made.
  max_start_ts TIMESTAMP,
  -- When the first input that went into it was made.
  min_start_ts TIMESTAMP,
  -- Its scroll.
  scroll_id LONG,
  -- Chrome's number of its input.
  scroll_update_id LONG,
  -- Numbers of all its inputs, with commas.
  encapsulated_scroll_ids STRING,
  -- How far the page moved with all of them, in pixels.
  total_delta DOUBLE,
  -- How far it moved with each, with commas.
  segregated_delta_y STRING,
  -- The slice of its input.
  event_latency_id LONG,
  -- How long it took to be shown.
  dur DURATION,
  -- When it was on the screen.
  presentation_timestamp LONG,
  -- Time since the frame before was shown, in ms; 0 for the first of a scroll.
  delay_since_last_frame DOUBLE,
  -- Time from the last input of the frame before to the first of this one, in ms.
  delay_since_last_input DOUBLE,
  -- The slice of the frame before; -1 for the first of a scroll.
  prev_event_latency_id LONG
) AS
SELECT
  *,
  (
    presentation_timestamp
    - lag(presentation_timestamp, 1, presentation_timestamp) OVER (PARTITION BY scroll_id ORDER BY presentation_timestamp)
  ) / 1e6 AS delay_since_last_frame,
  (min_start_ts - lag(max_start_ts, 1, min_start_ts) OVER by_input) / 1e6 AS delay_since_last_input,
  lag(event_latency_id, 1, -1) OVER by_input AS prev_event_latency_id
FROM chrome_merged_frame_view
WINDOW by_input AS (PARTITION BY scroll_id ORDER BY min_start_ts);

-- The shortest time between two frames: as Chrome tells it, or else the shortest that occurs.
CREATE PERFETTO TABLE chrome_vsyncs(
  -- Time between two frames of the screen, in ms.
  vsync_interval DOUBLE
) AS
SELECT
  coalesce(
    (
      SELECT min(e.vsync_interval_ms)
      FROM chrome_frame_info_with_delay AS f
      JOIN chrome_event_latencies AS e ON e.id = f.event_latency_id
      WHERE e.vsync_interval_ms > 0
    ),
    min(delay_since_last_frame)
  ) AS vsync_interval
FROM chrome_frame_info_with_delay
WHERE delay_since_last_frame > 0;

-- Janky frames: late, and not for want of input.
CREATE PERFETTO TABLE chrome_janky_frames_no_cause(
  -- Time since the frame before was shown, in ms; 0 for the first of a scroll.
  delay_since_last_frame DOUBLE,
  -- The slice of its input.
  event_latency_id LONG,
  -- Time between two frames of the screen, in ms.
  vsync_interval DOUBLE,
  -- Class of the hardware.
  hardware_class STRING,
  -- Its scroll.
  scroll_id LONG,
  -- The slice of the frame before; -1 for the first of a scroll.
  prev_event_latency_id LONG
) AS
SELECT
  f.delay_since_last_frame,
  f.event_latency_id,
  v.vsync_interval,
  chrome_hardware_class() AS hardware_class,
  f.scroll_id,
  f.prev_event_latency_id
FROM chrome_frame_info_with_delay AS f
JOIN chrome_vsyncs AS v
WHERE f.delay_since_last_frame > v.vsync_interval * 1.5 AND f.delay_since_last_input < v.vsync_interval * 1.5;

-- The same with what caused it.
CREATE PERFETTO TABLE chrome_janky_frames_no_subcause(
  -- Time since the frame before was shown, in ms; 0 for the first of a scroll.
  delay_since_last_frame DOUBLE,
  -- The slice of its input.
  event_latency_id LONG,
  -- Time between two frames of the screen, in ms.
  vsync_interval DOUBLE,
  -- Class of the hardware.
  hardware_class STRING,
  -- Its scroll.
  scroll_id LONG,
  -- The slice of the frame before; -1 for the first of a scroll.
  prev_event_latency_id LONG,
  -- Slice of the part that took longer than in the frame before.
  cause_id LONG
) AS
SELECT *, chrome_get_v3_jank_cause_id(event_latency_id, prev_event_latency_id) AS cause_id
FROM chrome_janky_frames_no_cause;

-- The same with what in the cause did.
CREATE PERFETTO TABLE chrome_janky_frames(
  -- The part that took longer than in the frame before.
  cause_of_jank STRING,
  -- What in that part did.
  sub_cause_of_jank STRING,
  -- Time since the frame before was shown, in ms; 0 for the first of a scroll.
  delay_since_last_frame DOUBLE,
  -- The slice of its input.
  event_latency_id LONG,
  -- Time between two frames of the screen, in ms.
  vsync_interval DOUBLE,
  -- Class of the hardware.
  hardware_class STRING,
  -- Its scroll.
  scroll_id LONG
) AS
SELECT
  c.name AS cause_of_jank,
  (
    SELECT s.name
    FROM slice AS s
    WHERE
      s.id = chrome_get_v3_jank_cause_id(
        f.cause_id,
        (SELECT min(p.id) FROM slice AS p WHERE p.parent_id = f.prev_event_latency_id AND p.name = c.name)
      )
  ) AS sub_cause_of_jank,
  f.delay_since_last_frame,
  f.event_latency_id,
  f.vsync_interval,
  f.hardware_class,
  f.scroll_id
FROM chrome_janky_frames_no_subcause AS f
LEFT JOIN slice AS c ON c.id = f.cause_id;

-- Moments at which a frame was shown.
CREATE PERFETTO TABLE chrome_unique_frame_presentation_ts(
  -- When it was on the screen.
  presentation_timestamp LONG
) AS
SELECT DISTINCT presentation_timestamp FROM chrome_presented_gesture_scrolls;

-- The measure that Chrome reports as Event.Jank.DelayedFramesPercentage.
CREATE PERFETTO TABLE chrome_janky_frames_percentage(
  -- Janky frames of all frames, in percent.
  delayed_frame_percentage DOUBLE
) AS
SELECT
  (SELECT count() FROM chrome_janky_frames) * 1.0 / (SELECT count() FROM chrome_unique_frame_presentation_ts) * 100
    AS delayed_frame_percentage;

-- By scroll.
CREATE PERFETTO TABLE chrome_frames_per_scroll(
  -- Its scroll.
  scroll_id LONG,
  -- How many frames it had.
  num_frames LONG,
  -- How many of them were janky; NULL for none.
  num_janky_frames LONG,
  -- Janky frames of them, in percent; NULL for none.
  scroll_jank_percentage DOUBLE
) AS
WITH
  janky AS (SELECT scroll_id, count() AS num_janky_frames FROM chrome_janky_frames GROUP BY scroll_id)
SELECT
  f.scroll_id,
  count() AS num_frames,
  j.num_janky_frames,
  100.0 * j.num_janky_frames / count() AS scroll_jank_percentage
FROM chrome_frame_info_with_delay AS f
LEFT JOIN janky AS j USING (scroll_id)
GROUP BY f.scroll_id;

-- Name of a slice.
CREATE PERFETTO FUNCTION _slice_name_from_id(
  -- Row of slice.
  id LONG
)
RETURNS STRING AS
SELECT name FROM slice WHERE id = $id;

-- The scrolls that were shown, by another name.
CREATE PERFETTO VIEW _presented_gesture_scrolls AS
SELECT id, ts, dur, scroll_update_id, scroll_id, presentation_timestamp, event_type, last_presented_input_ts
FROM chrome_presented_gesture_scrolls;
