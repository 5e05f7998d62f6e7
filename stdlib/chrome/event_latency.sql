-- How long Chrome took from an input to the picture that shows it, by its slices "EventLatency".

-- Parts of them, at any depth below: (latency_id, id, name, ts, ts_end); NULL for an end that nobody saw.
CREATE PERFETTO TABLE _chrome_latency_parts AS
SELECT a.id AS latency_id, s.id, s.name, s.ts, iif(s.dur < 0, NULL, s.ts + s.dur) AS ts_end
FROM slice AS s
JOIN ancestor_slice(s.id) AS a
WHERE
  a.name = 'EventLatency'
  AND (
    s.name IN ('BufferAvailableToBufferReady', 'BufferReadyToLatch', 'LatchToSwapEnd')
    OR s.name GLOB '*ToPresentation'
    OR s.name GLOB '*ToPresentationCompositorFrame'
  )
ORDER BY a.id, s.id;

CREATE PERFETTO INDEX _chrome_latency_parts_by_latency ON _chrome_latency_parts(latency_id);

-- Start of the first slice below another whose name fits a pattern.
CREATE PERFETTO FUNCTION _descendant_slice_begin(
  parent_id LONG,
  -- The pattern (GLOB).
  child_name STRING
)
RETURNS LONG AS
SELECT d.ts FROM descendant_slice($parent_id) AS d WHERE d.name GLOB $child_name ORDER BY d.id LIMIT 1;

-- End of that slice; NULL for one that has none.
CREATE PERFETTO FUNCTION _descendant_slice_end(
  parent_id LONG,
  -- The pattern (GLOB).
  child_name STRING
)
RETURNS LONG AS
SELECT iif(d.dur = -1, NULL, d.ts + d.dur)
FROM descendant_slice($parent_id) AS d
WHERE d.name GLOB $child_name
ORDER BY d.id
LIMIT 1;

-- Is there one?
CREATE PERFETTO FUNCTION _has_descendant_slice_with_name(
  id LONG,
  -- The pattern (GLOB).
  descendant_name STRING
)
RETURNS BOOL AS
SELECT EXISTS (SELECT 1 FROM descendant_slice($id) AS d WHERE d.name GLOB $descendant_name);

-- When the picture of an EventLatency was on the screen: the end of the part that names this, which is another one in older releases.
CREATE PERFETTO FUNCTION _get_presentation_timestamp(
  id LONG
)
RETURNS LONG AS
SELECT
  coalesce(
    _descendant_slice_end($id, 'SwapEndToPresentationCompositorFrame'),
    _descendant_slice_end($id, '*ToPresentation'),
    _descendant_slice_end($id, 'LatchToSwapEnd')
  );

-- Start, or end, of the first part of that name.
CREATE PERFETTO MACRO _latency_part(
  -- ts or ts_end.
  moment ColumnName,
  -- What the name looks like.
  pattern Expr
)
RETURNS Expr AS
(
  SELECT p.$moment FROM _chrome_latency_parts AS p WHERE p.latency_id = s.id AND p.name GLOB $pattern ORDER BY p.id LIMIT 1
);

-- All of them.
CREATE PERFETTO TABLE chrome_event_latencies(
  -- The slice.
  id LONG,
  -- Its name, 'EventLatency'.
  name STRING,
  -- When the input was made.
  ts TIMESTAMP,
  -- How long it took until it was dealt with or shown.
  dur DURATION,
  -- Chrome's number of the input.
  scroll_update_id LONG,
  -- Number of the first frame of a client that shows it; NULL when it was not shown or the release does not tell.
  surface_frame_trace_id LONG,
  -- Number of the first whole frame that shows it; NULL when it was not shown or the release does not tell.
  display_trace_id LONG,
  -- Whether it was shown.
  is_presented BOOL,
  -- Kind of input.
  event_type STRING,
  -- Track of the slice.
  track_id LONG,
  -- Time between two frames of the screen, in ms.
  vsync_interval_ms DOUBLE,
  -- Whether Chrome calls the frame janky (DelayedFramesPercentage.FixedWindow).
  is_janky_scrolled_frame BOOL,
  -- When there was a buffer to draw into.
  buffer_available_timestamp LONG,
  -- When the buffer was drawn.
  buffer_ready_timestamp LONG,
  -- When the system took the buffer.
  latch_timestamp LONG,
  -- When the buffers were swapped.
  swap_end_timestamp LONG,
  -- When it was on the screen.
  presentation_timestamp LONG
) AS
SELECT
  s.id,
  s.name,
  s.ts,
  s.dur,
  extract_arg(s.arg_set_id, 'event_latency.event_latency_id') AS scroll_update_id,
  extract_arg(s.arg_set_id, 'event_latency.surface_frame_trace_id') AS surface_frame_trace_id,
  extract_arg(s.arg_set_id, 'event_latency.display_trace_id') AS display_trace_id,
  EXISTS (
    SELECT 1 FROM _chrome_latency_parts AS p WHERE p.latency_id = s.id AND p.name GLOB 'Submit*ToPresentationCompositorFrame'
  ) AS is_presented,
  extract_arg(s.arg_set_id, 'event_latency.event_type') AS event_type,
  s.track_id,
  extract_arg(s.arg_set_id, 'event_latency.vsync_interval_ms') AS vsync_interval_ms,
  coalesce(extract_arg(s.arg_set_id, 'event_latency.is_janky_scrolled_frame'), 0) AS is_janky_scrolled_frame,
  _latency_part!(ts, 'BufferAvailableToBufferReady') AS buffer_available_timestamp,
  _latency_part!(ts, 'BufferReadyToLatch') AS buffer_ready_timestamp,
  coalesce(_latency_part!(ts, 'LatchToSwapEnd'), _latency_part!(ts, 'LatchToPresentation')) AS latch_timestamp,
  _latency_part!(ts, 'SwapEndToPresentationCompositorFrame') AS swap_end_timestamp,
  -- what tells when the frame was shown differs between releases
  coalesce(
    _latency_part!(ts_end, 'SwapEndToPresentationCompositorFrame'),
    _latency_part!(ts_end, '*ToPresentation'),
    _latency_part!(ts_end, 'LatchToSwapEnd')
  ) AS presentation_timestamp
FROM slice AS s
WHERE s.name = 'EventLatency'
ORDER BY s.id;

-- Those of scrolls, and of pinches that were shown. A scroll begins with its FIRST_GESTURE_SCROLL_UPDATE; what the trace begins
-- within is one too.
CREATE PERFETTO TABLE chrome_gesture_scroll_updates(
  -- The slice.
  id LONG,
  -- Its name, 'EventLatency'.
  name STRING,
  -- When the input was made.
  ts TIMESTAMP,
  -- How long it took until it was dealt with or shown.
  dur DURATION,
  -- Chrome's number of the input.
  scroll_update_id LONG,
  -- Whether it was shown.
  is_presented BOOL,
  -- Kind of input.
  event_type STRING,
  -- Track of the slice.
  track_id LONG,
  -- Time between two frames of the screen, in ms.
  vsync_interval_ms DOUBLE,
  -- Whether Chrome calls the frame janky (DelayedFramesPercentage.FixedWindow).
  is_janky BOOL,
  -- When there was a buffer to draw into.
  buffer_available_timestamp LONG,
  -- When the buffer was drawn.
  buffer_ready_timestamp LONG,
  -- When the system took the buffer.
  latch_timestamp LONG,
  -- When the buffers were swapped.
  swap_end_timestamp LONG,
  -- When it was on the screen.
  presentation_timestamp LONG,
  -- Number of the scroll.
  scroll_id LONG
) AS
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
  sum(event_type = 'FIRST_GESTURE_SCROLL_UPDATE') OVER by_time
  + (first_value(event_type) OVER by_time != 'FIRST_GESTURE_SCROLL_UPDATE') AS scroll_id
FROM chrome_event_latencies
WHERE
  event_type IN ('FIRST_GESTURE_SCROLL_UPDATE', 'GESTURE_SCROLL_UPDATE', 'INERTIAL_GESTURE_SCROLL_UPDATE')
  OR (event_type GLOB '*GESTURE_PINCH_UPDATE' AND is_presented)
WINDOW by_time AS (ORDER BY ts, id);
