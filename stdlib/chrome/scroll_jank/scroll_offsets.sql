-- How far scrolls moved: as the finger did, and as the page on the screen.

INCLUDE PERFETTO MODULE chrome.event_latency;

-- Movement of each input, as the system told it.
CREATE PERFETTO TABLE chrome_scroll_input_deltas(
  -- Chrome's number of the input.
  scroll_update_id LONG,
  -- Movement to the side, in pixels.
  delta_x DOUBLE,
  -- Movement up or down, in pixels.
  delta_y DOUBLE
) AS
SELECT
  extract_arg(arg_set_id, 'scroll_deltas.trace_id') AS scroll_update_id,
  extract_arg(arg_set_id, 'scroll_deltas.original_delta_x') AS delta_x,
  extract_arg(arg_set_id, 'scroll_deltas.original_delta_y') AS delta_y
FROM slice
WHERE name = 'TranslateAndScaleWebInputEvent';

-- The same, added up over each scroll.
CREATE PERFETTO TABLE chrome_scroll_input_offsets(
  -- Chrome's number of the input.
  scroll_update_id LONG,
  -- Its scroll.
  scroll_id LONG,
  -- When the input was made.
  ts TIMESTAMP,
  -- Movement up or down, in pixels.
  delta_y DOUBLE,
  -- All movement of the scroll so far.
  relative_offset_y DOUBLE
) AS
SELECT
  d.scroll_update_id,
  u.scroll_id,
  u.ts,
  d.delta_y,
  sum(d.delta_y) OVER (PARTITION BY u.scroll_id ORDER BY u.ts ROWS UNBOUNDED PRECEDING) AS relative_offset_y
FROM chrome_scroll_input_deltas AS d
JOIN chrome_gesture_scroll_updates AS u USING (scroll_update_id);

-- Movement of the page with each input, as the compositor was told.
CREATE PERFETTO TABLE chrome_scroll_presented_deltas(
  -- Chrome's number of the input.
  scroll_update_id LONG,
  -- Movement to the side, in pixels.
  delta_x DOUBLE,
  -- Movement up or down, in pixels.
  delta_y DOUBLE,
  -- Where the page is then, to the side.
  offset_x LONG,
  -- Where the page is then, up or down.
  offset_y LONG
) AS
SELECT
  extract_arg(arg_set_id, 'scroll_deltas.trace_id') AS scroll_update_id,
  extract_arg(arg_set_id, 'scroll_deltas.provided_to_compositor_delta_x') AS delta_x,
  extract_arg(arg_set_id, 'scroll_deltas.provided_to_compositor_delta_y') AS delta_y,
  extract_arg(arg_set_id, 'scroll_deltas.visual_offset_x') AS offset_x,
  extract_arg(arg_set_id, 'scroll_deltas.visual_offset_y') AS offset_y
FROM slice
WHERE name = 'InputHandlerProxy::HandleGestureScrollUpdate_Result';

-- The same by the moment of the screen, with its first input, added up over each scroll. All that was never shown counts as one frame, before
-- the others.
CREATE PERFETTO TABLE chrome_presented_scroll_offsets(
  -- Chrome's number of the input.
  scroll_update_id LONG,
  -- Its scroll.
  scroll_id LONG,
  -- When the frame was on the screen.
  ts TIMESTAMP,
  -- Movement up or down, in pixels.
  delta_y DOUBLE,
  -- All movement of the scroll so far.
  relative_offset_y DOUBLE
) AS
SELECT scroll_update_id, scroll_id, ts, delta_y, relative_offset_y
FROM (
  SELECT
    scroll_update_id,
    u.scroll_id,
    u.presentation_timestamp AS ts,
    sum(d.delta_y) OVER (PARTITION BY u.presentation_timestamp) AS delta_y,
    sum(d.delta_y) OVER (PARTITION BY u.scroll_id ORDER BY u.presentation_timestamp GROUPS UNBOUNDED PRECEDING) AS relative_offset_y,
    row_number() OVER (PARTITION BY u.presentation_timestamp ORDER BY u.ts) AS place
  FROM chrome_scroll_presented_deltas AS d
  JOIN chrome_gesture_scroll_updates AS u USING (scroll_update_id)
)
WHERE place = 1;
