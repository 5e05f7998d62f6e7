-- How long Chrome took from an input to the picture that shows it, by its slices "EventLatency".

-- When the part of a latency with that name began.
CREATE PERFETTO FUNCTION _chrome_latency_part(
  id LONG,
  name STRING
)
RETURNS LONG AS
SELECT min(ts) FROM slice WHERE parent_id = $id AND name = $name;

-- All of them.
CREATE PERFETTO TABLE chrome_event_latencies(
  id LONG,
  name STRING,
  ts TIMESTAMP,
  dur DURATION,
  scroll_update_id LONG,
  surface_frame_trace_id LONG,
  display_trace_id LONG,
  is_presented BOOL,
  event_type STRING,
  track_id LONG,
  vsync_interval_ms DOUBLE,
  is_janky_scrolled_frame BOOL,
  buffer_available_timestamp LONG,
  buffer_ready_timestamp LONG,
  latch_timestamp LONG,
  swap_end_timestamp LONG,
  presentation_timestamp LONG
) AS
SELECT
  id,
  name,
  ts,
  dur,
  extract_arg(arg_set_id, 'event_latency.event_latency_id') AS scroll_update_id,
  extract_arg(arg_set_id, 'event_latency.surface_frame_trace_id') AS surface_frame_trace_id,
  extract_arg(arg_set_id, 'event_latency.display_trace_id') AS display_trace_id,
  _chrome_latency_part(id, 'SwapEndToPresentationCompositorFrame') IS NOT NULL AS is_presented,
  extract_arg(arg_set_id, 'event_latency.event_type') AS event_type,
  track_id,
  extract_arg(arg_set_id, 'event_latency.vsync_interval_ms') AS vsync_interval_ms,
  coalesce(extract_arg(arg_set_id, 'event_latency.is_janky_scrolled_frame'), 0) AS is_janky_scrolled_frame,
  _chrome_latency_part(id, 'BufferAvailableToBufferReady') AS buffer_available_timestamp,
  _chrome_latency_part(id, 'BufferReadyToLatch') AS buffer_ready_timestamp,
  coalesce(_chrome_latency_part(id, 'LatchToSwapEnd'), _chrome_latency_part(id, 'LatchToPresentation')) AS latch_timestamp,
  _chrome_latency_part(id, 'SwapEndToPresentationCompositorFrame') AS swap_end_timestamp,
  (SELECT max(p.ts + p.dur) FROM slice AS p WHERE p.parent_id = slice.id AND p.name = 'SwapEndToPresentationCompositorFrame')
    AS presentation_timestamp
FROM slice
WHERE name = 'EventLatency';

-- Those of scrolls, with the number of the scroll: the how manieth beginning they follow.
CREATE PERFETTO TABLE chrome_gesture_scroll_updates(
  id LONG,
  name STRING,
  ts TIMESTAMP,
  dur DURATION,
  scroll_update_id LONG,
  is_presented BOOL,
  event_type STRING,
  track_id LONG,
  vsync_interval_ms DOUBLE,
  is_janky BOOL,
  buffer_available_timestamp LONG,
  buffer_ready_timestamp LONG,
  latch_timestamp LONG,
  swap_end_timestamp LONG,
  presentation_timestamp LONG,
  scroll_id LONG
) AS
WITH
  numbered AS (
    SELECT *, sum(event_type = 'GESTURE_SCROLL_BEGIN') OVER (ORDER BY ts, id) AS scroll_id
    FROM chrome_event_latencies
    WHERE event_type IN (
      'GESTURE_SCROLL_BEGIN', 'FIRST_GESTURE_SCROLL_UPDATE', 'GESTURE_SCROLL_UPDATE', 'INERTIAL_GESTURE_SCROLL_UPDATE'
    )
  )
SELECT
  id,
  name,
  ts,
  dur,
  scroll_update_id,
  is_presented,
  event_type,
  track_id,
  vsync_interval_ms,
  is_janky_scrolled_frame AS is_janky,
  buffer_available_timestamp,
  buffer_ready_timestamp,
  latch_timestamp,
  swap_end_timestamp,
  presentation_timestamp,
  scroll_id
FROM numbered
WHERE event_type != 'GESTURE_SCROLL_BEGIN';
