-- Scrolls in Chrome, and the way of each of their inputs from the finger to the screen.
--
-- A way has two halves: that of the input, through the browser to the renderer's compositor; and that of the frame that it goes
-- into, often with others, through the renderer and the GPU process.

INCLUDE PERFETTO MODULE chrome.android_input;
INCLUDE PERFETTO MODULE chrome.event_latency;
INCLUDE PERFETTO MODULE chrome.graphics_pipeline;
INCLUDE PERFETTO MODULE chrome.input;
INCLUDE PERFETTO MODULE chrome.scroll_jank.scroll_offsets;

-- The scrolls.
CREATE PERFETTO TABLE chrome_scrolls(
  -- Number of the scroll.
  id LONG,
  -- When its first input was made.
  ts TIMESTAMP,
  -- From there to when its last one was dealt with.
  dur DURATION,
  -- NULL: kept for clients that ask for it.
  gesture_scroll_begin_ts TIMESTAMP,
  -- NULL: kept for clients that ask for it.
  gesture_scroll_end_ts TIMESTAMP
) AS
SELECT
  scroll_id AS id,
  min(ts) AS ts,
  max(ts + dur) - min(ts) AS dur,
  NULL AS gesture_scroll_begin_ts,
  NULL AS gesture_scroll_end_ts
FROM chrome_gesture_scroll_updates
GROUP BY scroll_id;

-- By what numbers each input goes on its way.
CREATE PERFETTO TABLE chrome_scroll_update_refs(
  -- Chrome's number of the input.
  scroll_update_latency_id LONG,
  -- The touch it was made of.
  touch_move_latency_id LONG,
  -- The input that the frame showing it goes by: itself, or the one it was put together with.
  presentation_latency_id LONG,
  -- The renderer's frame that shows it.
  surface_frame_id LONG,
  -- The whole frame that shows it.
  display_trace_id LONG
) AS
SELECT
  i.latency_id AS scroll_update_latency_id,
  t.touch_move_latency_id,
  coalesce(c.presented_latency_id, i.latency_id) AS presentation_latency_id,
  s.surface_frame_trace_id AS surface_frame_id,
  d.display_trace_id
FROM chrome_inputs AS i
LEFT JOIN chrome_graphics_pipeline_inputs_to_surface_frames AS s ON s.latency_id = i.latency_id
LEFT JOIN chrome_surface_frame_id_to_first_display_id AS d ON d.surface_frame_trace_id = s.surface_frame_trace_id
LEFT JOIN chrome_touch_move_to_scroll_update AS t ON t.scroll_update_latency_id = i.latency_id
LEFT JOIN chrome_coalesced_inputs AS c ON c.coalesced_latency_id = i.latency_id
WHERE i.input_type = 'GESTURE_SCROLL_UPDATE_EVENT';

-- The slices of a step; start_ts is the start of the task around one, where it is told.
CREATE PERFETTO MACRO _chrome_step(
  -- Steps, as the modules of the pipelines have them.
  steps TableOrSubquery,
  -- Name of the step.
  wanted Expr
)
RETURNS TableOrSubquery AS
(
  SELECT *, coalesce(task_start_time_ts, ts) AS start_ts FROM $steps WHERE step = $wanted
);

-- The same for inputs of a kind.
CREATE PERFETTO MACRO _chrome_input_step(
  -- Kind of input.
  kind Expr,
  -- Name of the step.
  wanted Expr
)
RETURNS TableOrSubquery AS
(
  SELECT * FROM _chrome_step!((SELECT * FROM chrome_input_pipeline_steps WHERE input_type = $kind), $wanted)
);

-- The half of the input.
CREATE PERFETTO TABLE chrome_scroll_update_input_pipeline(
  -- Chrome's number of the input.
  id LONG,
  -- Its scroll.
  scroll_id LONG,
  -- Number of the input that the frame showing it goes by.
  presented_in_frame_id LONG,
  -- Whether it was shown.
  is_presented BOOL,
  -- Whether Chrome calls the frame janky (DelayedFramesPercentage.FixedWindow).
  is_janky BOOL,
  -- Whether it is a fling, which goes on without a finger; then there is no touch.
  is_inertial BOOL,
  -- Whether it is the first of its scroll.
  is_first_scroll_update_in_scroll BOOL,
  -- Whether it is the first that its frame shows.
  is_first_scroll_update_in_frame BOOL,
  -- When the system made the input.
  generation_ts TIMESTAMP,
  -- When Android's input reader was done with it; told with atrace's category input.
  input_reader_processing_end_ts TIMESTAMP,
  -- When Android's input dispatcher was done with it; told with atrace's category input.
  input_dispatcher_processing_end_ts TIMESTAMP,
  -- From there to when the browser's main thread got it.
  generation_to_browser_main_dur DURATION,
  -- The browser's main thread.
  browser_utid LONG,
  -- Slice in which the browser got the touch.
  touch_move_received_slice_id LONG,
  -- Its start.
  touch_move_received_ts TIMESTAMP,
  -- How long the browser took to make a scroll of the touch.
  touch_move_processing_dur DURATION,
  -- Slice in which the browser made the scroll.
  scroll_update_created_slice_id LONG,
  -- Its start.
  scroll_update_created_ts TIMESTAMP,
  -- Its length.
  scroll_update_processing_dur DURATION,
  -- Its end.
  scroll_update_created_end_ts TIMESTAMP,
  -- From there to the renderer's compositor.
  browser_to_compositor_delay_dur DURATION,
  -- The renderer's compositor.
  compositor_utid LONG,
  -- Slice in which the compositor got the scroll.
  compositor_dispatch_slice_id LONG,
  -- Its start, or that of the task around it.
  compositor_dispatch_ts TIMESTAMP,
  -- From that start to its end.
  compositor_dispatch_dur DURATION,
  -- Its end.
  compositor_dispatch_end_ts TIMESTAMP,
  -- From there to when the compositor began to apply the scroll.
  compositor_dispatch_to_coalesced_input_handled_dur DURATION,
  -- Slice in which the compositor applied the scroll.
  compositor_coalesced_input_handled_slice_id LONG,
  -- Its start.
  compositor_coalesced_input_handled_ts TIMESTAMP,
  -- Its length.
  compositor_coalesced_input_handled_dur DURATION,
  -- Its end.
  compositor_coalesced_input_handled_end_ts TIMESTAMP
) AS
SELECT
  r.scroll_update_latency_id AS id,
  u.scroll_id,
  r.presentation_latency_id AS presented_in_frame_id,
  u.is_presented,
  u.is_janky,
  u.event_type = 'INERTIAL_GESTURE_SCROLL_UPDATE' AS is_inertial,
  u.event_type = 'FIRST_GESTURE_SCROLL_UPDATE' AS is_first_scroll_update_in_scroll,
  row_number() OVER (PARTITION BY r.presentation_latency_id ORDER BY u.ts) = 1 AS is_first_scroll_update_in_frame,
  u.ts AS generation_ts,
  a.input_reader_processing_end_ts,
  a.input_dispatcher_processing_end_ts,
  -- some inputs come before they were made
  max(
    iif(u.event_type = 'INERTIAL_GESTURE_SCROLL_UPDATE' AND t.ts IS NULL, c.ts, t.ts), u.ts
  ) - u.ts AS generation_to_browser_main_dur,
  c.utid AS browser_utid,
  t.slice_id AS touch_move_received_slice_id,
  t.ts AS touch_move_received_ts,
  c.ts - max(t.ts, u.ts) AS touch_move_processing_dur,
  c.slice_id AS scroll_update_created_slice_id,
  c.ts AS scroll_update_created_ts,
  c.dur AS scroll_update_processing_dur,
  c.ts + c.dur AS scroll_update_created_end_ts,
  max(d.start_ts, c.ts + c.dur) - (c.ts + c.dur) AS browser_to_compositor_delay_dur,
  d.utid AS compositor_utid,
  d.slice_id AS compositor_dispatch_slice_id,
  d.start_ts AS compositor_dispatch_ts,
  d.ts + d.dur - d.start_ts AS compositor_dispatch_dur,
  d.ts + d.dur AS compositor_dispatch_end_ts,
  h.ts - (d.ts + d.dur) AS compositor_dispatch_to_coalesced_input_handled_dur,
  h.slice_id AS compositor_coalesced_input_handled_slice_id,
  h.ts AS compositor_coalesced_input_handled_ts,
  h.dur AS compositor_coalesced_input_handled_dur,
  h.ts + h.dur AS compositor_coalesced_input_handled_end_ts
FROM chrome_scroll_update_refs AS r
LEFT JOIN chrome_gesture_scroll_updates AS u ON u.scroll_update_id = r.scroll_update_latency_id
LEFT JOIN chrome_dispatch_android_input_event_to_touch_move AS m ON m.touch_move_latency_id = r.touch_move_latency_id
LEFT JOIN chrome_android_input AS a ON a.android_input_id = m.android_input_id
LEFT JOIN _chrome_input_step!('TOUCH_MOVE_EVENT', 'STEP_SEND_INPUT_EVENT_UI') AS t ON t.latency_id = r.touch_move_latency_id
LEFT JOIN _chrome_input_step!('GESTURE_SCROLL_UPDATE_EVENT', 'STEP_SEND_INPUT_EVENT_UI') AS c
  ON c.latency_id = r.scroll_update_latency_id
LEFT JOIN _chrome_input_step!('GESTURE_SCROLL_UPDATE_EVENT', 'STEP_HANDLE_INPUT_EVENT_IMPL') AS d
  ON d.latency_id = r.scroll_update_latency_id
LEFT JOIN _chrome_input_step!('GESTURE_SCROLL_UPDATE_EVENT', 'STEP_DID_HANDLE_INPUT_AND_OVERSCROLL') AS h
  ON h.latency_id = r.scroll_update_latency_id;

-- The half of the frame, by the input that it goes by.
CREATE PERFETTO TABLE chrome_scroll_update_frame_pipeline(
  -- Chrome's number of the input.
  id LONG,
  -- The whole frame that shows it.
  display_trace_id LONG,
  -- Time between two frames of the screen, in ms.
  vsync_interval_ms DOUBLE,
  -- Slice in which the compositor put scrolls of a frame together.
  compositor_resample_slice_id LONG,
  -- Its start, or that of the task around it.
  compositor_resample_ts TIMESTAMP,
  -- When the compositor was told to begin a frame.
  compositor_receive_begin_frame_ts TIMESTAMP,
  -- Slice in which the compositor began to make the frame.
  compositor_generate_compositor_frame_slice_id LONG,
  -- Its start, or that of the task around it.
  compositor_generate_compositor_frame_ts TIMESTAMP,
  -- From there to when it submitted the frame.
  compositor_generate_frame_to_submit_frame_dur DURATION,
  -- Slice in which it did.
  compositor_submit_compositor_frame_slice_id LONG,
  -- Its start.
  compositor_submit_compositor_frame_ts TIMESTAMP,
  -- Its length.
  compositor_submit_frame_dur DURATION,
  -- Its end.
  compositor_submit_compositor_frame_end_ts TIMESTAMP,
  -- From there to the GPU process' compositor.
  compositor_to_viz_delay_dur DURATION,
  -- The GPU process' compositor.
  viz_compositor_utid LONG,
  -- Slice in which it got the frame.
  viz_receive_compositor_frame_slice_id LONG,
  -- Its start, or that of the task around it.
  viz_receive_compositor_frame_ts TIMESTAMP,
  -- From that start to its end.
  viz_receive_compositor_frame_dur DURATION,
  -- Its end.
  viz_receive_compositor_frame_end_ts TIMESTAMP,
  -- From there to when it began to draw.
  viz_wait_for_draw_dur DURATION,
  -- Slice in which it drew.
  viz_draw_and_swap_slice_id LONG,
  -- Its start, or that of the task around it.
  viz_draw_and_swap_ts TIMESTAMP,
  -- From that start to when the swap was sent.
  viz_draw_and_swap_dur DURATION,
  -- Slice in which the swap was sent.
  viz_send_buffer_swap_slice_id LONG,
  -- Its end.
  viz_send_buffer_swap_end_ts TIMESTAMP,
  -- From there to the GPU's thread.
  viz_to_gpu_delay_dur DURATION,
  -- The GPU's thread.
  viz_gpu_thread_utid LONG,
  -- Slice in which it swapped the buffers.
  viz_swap_buffers_slice_id LONG,
  -- Its start, or that of the task around it.
  viz_swap_buffers_ts TIMESTAMP,
  -- From that start to its end.
  viz_swap_buffers_dur DURATION,
  -- Its end.
  viz_swap_buffers_end_ts TIMESTAMP,
  -- From there to when the system took the buffer.
  viz_swap_buffers_to_latch_dur DURATION,
  -- When there was a buffer to draw into.
  buffer_available_timestamp TIMESTAMP,
  -- How long it was drawn into.
  buffer_available_to_ready_dur DURATION,
  -- When the buffer was drawn.
  buffer_ready_timestamp TIMESTAMP,
  -- When the system took the buffer.
  latch_timestamp TIMESTAMP,
  -- From there to when it was on the screen.
  viz_latch_to_presentation_dur DURATION,
  -- When it was on the screen.
  presentation_timestamp TIMESTAMP
) AS
SELECT
  r.scroll_update_latency_id AS id,
  r.display_trace_id,
  e.vsync_interval_ms,
  s.slice_id AS compositor_resample_slice_id,
  s.start_ts AS compositor_resample_ts,
  b.start_ts AS compositor_receive_begin_frame_ts,
  g.id AS compositor_generate_compositor_frame_slice_id,
  g.start_ts AS compositor_generate_compositor_frame_ts,
  m.ts - g.start_ts AS compositor_generate_frame_to_submit_frame_dur,
  m.id AS compositor_submit_compositor_frame_slice_id,
  m.ts AS compositor_submit_compositor_frame_ts,
  m.dur AS compositor_submit_frame_dur,
  m.ts + m.dur AS compositor_submit_compositor_frame_end_ts,
  v.start_ts - (m.ts + m.dur) AS compositor_to_viz_delay_dur,
  v.utid AS viz_compositor_utid,
  v.id AS viz_receive_compositor_frame_slice_id,
  v.start_ts AS viz_receive_compositor_frame_ts,
  v.ts + v.dur - v.start_ts AS viz_receive_compositor_frame_dur,
  v.ts + v.dur AS viz_receive_compositor_frame_end_ts,
  d.start_ts - (v.ts + v.dur) AS viz_wait_for_draw_dur,
  d.id AS viz_draw_and_swap_slice_id,
  d.start_ts AS viz_draw_and_swap_ts,
  w.ts + w.dur - d.start_ts AS viz_draw_and_swap_dur,
  w.id AS viz_send_buffer_swap_slice_id,
  w.ts + w.dur AS viz_send_buffer_swap_end_ts,
  p.start_ts - (w.ts + w.dur) AS viz_to_gpu_delay_dur,
  p.utid AS viz_gpu_thread_utid,
  p.id AS viz_swap_buffers_slice_id,
  p.start_ts AS viz_swap_buffers_ts,
  p.ts + p.dur - p.start_ts AS viz_swap_buffers_dur,
  p.ts + p.dur AS viz_swap_buffers_end_ts,
  e.latch_timestamp - (p.ts + p.dur) AS viz_swap_buffers_to_latch_dur,
  e.buffer_available_timestamp,
  e.buffer_ready_timestamp - e.buffer_available_timestamp AS buffer_available_to_ready_dur,
  e.buffer_ready_timestamp,
  e.latch_timestamp,
  e.presentation_timestamp - e.latch_timestamp AS viz_latch_to_presentation_dur,
  e.presentation_timestamp
FROM chrome_scroll_update_refs AS r
LEFT JOIN chrome_event_latencies AS e ON e.scroll_update_id = r.scroll_update_latency_id
LEFT JOIN _chrome_input_step!('GESTURE_SCROLL_UPDATE_EVENT', 'STEP_RESAMPLE_SCROLL_EVENTS') AS s
  ON s.latency_id = r.scroll_update_latency_id
LEFT JOIN _chrome_step!(chrome_graphics_pipeline_surface_frame_steps, 'STEP_RECEIVE_BEGIN_FRAME') AS b ON b.surface_frame_trace_id = r.surface_frame_id
LEFT JOIN _chrome_step!(chrome_graphics_pipeline_surface_frame_steps, 'STEP_GENERATE_COMPOSITOR_FRAME') AS g ON g.surface_frame_trace_id = r.surface_frame_id
LEFT JOIN _chrome_step!(chrome_graphics_pipeline_surface_frame_steps, 'STEP_SUBMIT_COMPOSITOR_FRAME') AS m ON m.surface_frame_trace_id = r.surface_frame_id
LEFT JOIN _chrome_step!(chrome_graphics_pipeline_surface_frame_steps, 'STEP_RECEIVE_COMPOSITOR_FRAME') AS v ON v.surface_frame_trace_id = r.surface_frame_id
LEFT JOIN _chrome_step!(chrome_graphics_pipeline_display_frame_steps, 'STEP_DRAW_AND_SWAP') AS d ON d.display_trace_id = r.display_trace_id
LEFT JOIN _chrome_step!(chrome_graphics_pipeline_display_frame_steps, 'STEP_SEND_BUFFER_SWAP') AS w ON w.display_trace_id = r.display_trace_id
LEFT JOIN _chrome_step!(chrome_graphics_pipeline_display_frame_steps, 'STEP_BUFFER_SWAP_POST_SUBMIT') AS p ON p.display_trace_id = r.display_trace_id
WHERE r.scroll_update_latency_id = r.presentation_latency_id;

-- Both halves. A time between two steps can be below zero, where their slices overlap.
CREATE PERFETTO TABLE chrome_scroll_update_info(
  -- Chrome's number of the input.
  id LONG,
  -- Its scroll.
  scroll_id LONG,
  -- The input before it in the scroll.
  previous_input_id LONG,
  -- The whole frame that shows it.
  frame_display_id LONG,
  -- Time between two frames of the screen, in ms.
  vsync_interval_ms DOUBLE,
  -- Whether it was shown.
  is_presented BOOL,
  -- Whether Chrome calls the frame janky (DelayedFramesPercentage.FixedWindow).
  is_janky BOOL,
  -- Whether it is a fling, which goes on without a finger; then there is no touch.
  is_inertial BOOL,
  -- Whether it is the first of its scroll.
  is_first_scroll_update_in_scroll BOOL,
  -- Whether it is the first that its frame shows.
  is_first_scroll_update_in_frame BOOL,
  -- Time since the browser's process started.
  browser_uptime_dur DURATION,
  -- When the system made the input.
  generation_ts TIMESTAMP,
  -- From there to when Android's input reader was done with it; told with atrace's category input.
  input_reader_dur DURATION,
  -- How long Android's input dispatcher then took; told with atrace's category input.
  input_dispatcher_dur DURATION,
  -- Time since the input before it was made.
  since_previous_generation_dur DURATION,
  -- From there to when the browser's main thread got it.
  generation_to_browser_main_dur DURATION,
  -- The browser's main thread.
  browser_utid LONG,
  -- Slice in which the browser got the touch.
  touch_move_received_slice_id LONG,
  -- Its start.
  touch_move_received_ts TIMESTAMP,
  -- How long the browser took to make a scroll of the touch.
  touch_move_processing_dur DURATION,
  -- Slice in which the browser made the scroll.
  scroll_update_created_slice_id LONG,
  -- Its start.
  scroll_update_created_ts TIMESTAMP,
  -- Its length.
  scroll_update_processing_dur DURATION,
  -- Its end.
  scroll_update_created_end_ts TIMESTAMP,
  -- From there to the renderer's compositor.
  browser_to_compositor_delay_dur DURATION,
  -- The renderer's compositor.
  compositor_utid LONG,
  -- Slice in which the compositor got the scroll.
  compositor_dispatch_slice_id LONG,
  -- Its start, or that of the task around it.
  compositor_dispatch_ts TIMESTAMP,
  -- From that start to its end.
  compositor_dispatch_dur DURATION,
  -- Its end.
  compositor_dispatch_end_ts TIMESTAMP,
  -- From there to when the compositor began with the scroll in a frame.
  compositor_dispatch_to_on_begin_frame_delay_dur DURATION,
  -- Slice in which the compositor put scrolls of a frame together.
  compositor_resample_slice_id LONG,
  -- Slice in which the compositor applied the scroll.
  compositor_coalesced_input_handled_slice_id LONG,
  -- When the compositor began with the scroll in a frame.
  compositor_on_begin_frame_ts TIMESTAMP,
  -- How long it took for it.
  compositor_on_begin_frame_dur DURATION,
  -- When it was done with it.
  compositor_on_begin_frame_end_ts TIMESTAMP,
  -- From there to when it began to make the frame.
  compositor_on_begin_frame_to_generation_delay_dur DURATION,
  -- Slice in which the compositor began to make the frame.
  compositor_generate_compositor_frame_slice_id LONG,
  -- Its start, or that of the task around it.
  compositor_generate_compositor_frame_ts TIMESTAMP,
  -- From there to when it submitted the frame.
  compositor_generate_frame_to_submit_frame_dur DURATION,
  -- Slice in which it did.
  compositor_submit_compositor_frame_slice_id LONG,
  -- Its start.
  compositor_submit_compositor_frame_ts TIMESTAMP,
  -- Its length.
  compositor_submit_frame_dur DURATION,
  -- Its end.
  compositor_submit_compositor_frame_end_ts TIMESTAMP,
  -- From there to the GPU process' compositor.
  compositor_to_viz_delay_dur DURATION,
  -- The GPU process' compositor.
  viz_compositor_utid LONG,
  -- Slice in which it got the frame.
  viz_receive_compositor_frame_slice_id LONG,
  -- Its start, or that of the task around it.
  viz_receive_compositor_frame_ts TIMESTAMP,
  -- From that start to its end.
  viz_receive_compositor_frame_dur DURATION,
  -- Its end.
  viz_receive_compositor_frame_end_ts TIMESTAMP,
  -- From there to when it began to draw.
  viz_wait_for_draw_dur DURATION,
  -- Slice in which it drew.
  viz_draw_and_swap_slice_id LONG,
  -- Its start, or that of the task around it.
  viz_draw_and_swap_ts TIMESTAMP,
  -- From that start to when the swap was sent.
  viz_draw_and_swap_dur DURATION,
  -- Slice in which the swap was sent.
  viz_send_buffer_swap_slice_id LONG,
  -- Its end.
  viz_send_buffer_swap_end_ts TIMESTAMP,
  -- From there to the GPU's thread.
  viz_to_gpu_delay_dur DURATION,
  -- The GPU's thread.
  viz_gpu_thread_utid LONG,
  -- Slice in which it swapped the buffers.
  viz_swap_buffers_slice_id LONG,
  -- Its start, or that of the task around it.
  viz_swap_buffers_ts TIMESTAMP,
  -- From that start to its end.
  viz_swap_buffers_dur DURATION,
  -- Its end.
  viz_swap_buffers_end_ts TIMESTAMP,
  -- From there to when the system took the buffer.
  viz_swap_buffers_to_latch_dur DURATION,
  -- When there was a buffer to draw into.
  buffer_available_timestamp TIMESTAMP,
  -- How long it was drawn into.
  buffer_available_to_ready_dur DURATION,
  -- When the buffer was drawn.
  buffer_ready_timestamp TIMESTAMP,
  -- When the system took the buffer.
  latch_timestamp TIMESTAMP,
  -- From there to when it was on the screen.
  viz_latch_to_presentation_dur DURATION,
  -- When it was on the screen.
  presentation_timestamp TIMESTAMP
) AS
SELECT
  i.id,
  i.scroll_id,
  lag(i.id) OVER by_time AS previous_input_id,
  f.display_trace_id AS frame_display_id,
  f.vsync_interval_ms,
  i.is_presented,
  i.is_janky,
  i.is_inertial,
  i.is_first_scroll_update_in_scroll,
  i.is_first_scroll_update_in_frame,
  i.generation_ts - p.start_ts AS browser_uptime_dur,
  i.generation_ts,
  i.input_reader_processing_end_ts - i.generation_ts AS input_reader_dur,
  i.input_dispatcher_processing_end_ts - i.input_reader_processing_end_ts AS input_dispatcher_dur,
  i.generation_ts - lag(i.generation_ts) OVER by_time AS since_previous_generation_dur,
  i.generation_to_browser_main_dur,
  i.browser_utid,
  i.touch_move_received_slice_id,
  i.touch_move_received_ts,
  i.touch_move_processing_dur,
  i.scroll_update_created_slice_id,
  i.scroll_update_created_ts,
  i.scroll_update_processing_dur,
  i.scroll_update_created_end_ts,
  i.browser_to_compositor_delay_dur,
  i.compositor_utid,
  i.compositor_dispatch_slice_id,
  i.compositor_dispatch_ts,
  i.compositor_dispatch_dur,
  i.compositor_dispatch_end_ts,
  coalesce(f.compositor_resample_ts, i.compositor_coalesced_input_handled_ts) - i.compositor_dispatch_end_ts AS compositor_dispatch_to_on_begin_frame_delay_dur,
  f.compositor_resample_slice_id,
  i.compositor_coalesced_input_handled_slice_id,
  coalesce(f.compositor_resample_ts, i.compositor_coalesced_input_handled_ts) AS compositor_on_begin_frame_ts,
  i.compositor_coalesced_input_handled_end_ts - coalesce(f.compositor_resample_ts, i.compositor_coalesced_input_handled_ts) AS compositor_on_begin_frame_dur,
  i.compositor_coalesced_input_handled_end_ts AS compositor_on_begin_frame_end_ts,
  f.compositor_generate_compositor_frame_ts - i.compositor_coalesced_input_handled_end_ts AS compositor_on_begin_frame_to_generation_delay_dur,
  f.compositor_generate_compositor_frame_slice_id,
  f.compositor_generate_compositor_frame_ts,
  f.compositor_generate_frame_to_submit_frame_dur,
  f.compositor_submit_compositor_frame_slice_id,
  f.compositor_submit_compositor_frame_ts,
  f.compositor_submit_frame_dur,
  f.compositor_submit_compositor_frame_end_ts,
  f.compositor_to_viz_delay_dur,
  f.viz_compositor_utid,
  f.viz_receive_compositor_frame_slice_id,
  f.viz_receive_compositor_frame_ts,
  f.viz_receive_compositor_frame_dur,
  f.viz_receive_compositor_frame_end_ts,
  f.viz_wait_for_draw_dur,
  f.viz_draw_and_swap_slice_id,
  f.viz_draw_and_swap_ts,
  f.viz_draw_and_swap_dur,
  f.viz_send_buffer_swap_slice_id,
  f.viz_send_buffer_swap_end_ts,
  f.viz_to_gpu_delay_dur,
  f.viz_gpu_thread_utid,
  f.viz_swap_buffers_slice_id,
  f.viz_swap_buffers_ts,
  f.viz_swap_buffers_dur,
  f.viz_swap_buffers_end_ts,
  f.viz_swap_buffers_to_latch_dur,
  f.buffer_available_timestamp,
  f.buffer_available_to_ready_dur,
  f.buffer_ready_timestamp,
  f.latch_timestamp,
  f.viz_latch_to_presentation_dur,
  f.presentation_timestamp
FROM chrome_scroll_update_input_pipeline AS i
LEFT JOIN chrome_scroll_update_frame_pipeline AS f ON f.id = i.presented_in_frame_id
LEFT JOIN thread AS t ON t.utid = i.browser_utid
LEFT JOIN process AS p ON p.upid = t.upid
WINDOW by_time AS (PARTITION BY i.scroll_id ORDER BY i.generation_ts);

-- The same of the frame before, taken away; NULL for the first input of a scroll.
CREATE PERFETTO MACRO _chrome_scroll_frame_stage_delta(
  -- Column with the time.
  name ColumnName
)
RETURNS Expr AS iif(u.is_first_scroll_update_in_scroll, NULL, $name - lag($name) OVER by_frame);

-- Frames that inputs went into, with the way of their first input.
CREATE PERFETTO TABLE chrome_scroll_frame_info(
  -- The whole frame.
  id LONG,
  -- Its scroll.
  scroll_id LONG,
  -- The last input before those of the frame.
  last_input_before_this_frame_id LONG,
  -- Time between two frames of the screen, in ms.
  vsync_interval_ms DOUBLE,
  -- Time between two frames of the screen.
  vsync_interval_dur DURATION,
  -- Whether Chrome calls the frame janky (DelayedFramesPercentage.FixedWindow).
  is_janky BOOL,
  -- Whether it is a fling.
  is_inertial BOOL,
  -- How far the finger moved, in pixels, over all inputs of the frame.
  total_input_delta_y DOUBLE,
  -- How far the page moved, in pixels.
  presented_scrolled_delta_y DOUBLE,
  -- Time since the browser's process started.
  browser_uptime_dur DURATION,
  -- When the system made the first input of the frame.
  first_input_generation_ts TIMESTAMP,
  -- From there to when Android's input reader was done with it; told with atrace's category input.
  input_reader_dur DURATION,
  -- How long Android's input dispatcher then took; told with atrace's category input.
  input_dispatcher_dur DURATION,
  -- Time between the last input before the frame and its first.
  previous_last_input_to_first_input_generation_dur DURATION,
  -- When the frame was on the screen.
  presentation_ts TIMESTAMP,
  -- The browser's main thread.
  browser_utid JOINID(thread.id),
  -- From there to when the browser's main thread got it.
  first_input_generation_to_browser_main_dur DURATION,
  -- The difference to the frame before.
  first_input_generation_to_browser_main_delta_dur DURATION,
  -- How long the browser took to make a scroll of the touch.
  first_input_touch_move_processing_dur DURATION,
  -- The difference to the frame before.
  first_input_touch_move_processing_delta_dur DURATION,
  -- The renderer's compositor.
  compositor_utid JOINID(thread.id),
  -- From there to the renderer's compositor.
  first_input_browser_to_compositor_delay_dur DURATION,
  -- The difference to the frame before.
  first_input_browser_to_compositor_delay_delta_dur DURATION,
  -- From that start to its end.
  first_input_compositor_dispatch_dur DURATION,
  -- The difference to the frame before.
  first_input_compositor_dispatch_delta_dur DURATION,
  -- From there to when the compositor began with the scroll in a frame.
  first_input_compositor_dispatch_to_on_begin_frame_delay_dur DURATION,
  -- The difference to the frame before.
  first_input_compositor_dispatch_to_on_begin_frame_delay_delta_dur DURATION,
  -- How long it took for it.
  compositor_on_begin_frame_dur DURATION,
  -- The difference to the frame before.
  compositor_on_begin_frame_delta_dur DURATION,
  -- From there to when it began to make the frame.
  compositor_on_begin_frame_to_generation_delay_dur DURATION,
  -- The difference to the frame before.
  compositor_on_begin_frame_to_generation_delay_delta_dur DURATION,
  -- From there to when it submitted the frame.
  compositor_generate_frame_to_submit_frame_dur DURATION,
  -- The difference to the frame before.
  compositor_generate_frame_to_submit_frame_delta_dur DURATION,
  -- Its length.
  compositor_submit_frame_dur DURATION,
  -- The difference to the frame before.
  compositor_submit_frame_delta_dur DURATION,
  -- The GPU process' compositor.
  viz_compositor_utid JOINID(thread.id),
  -- From there to the GPU process' compositor.
  compositor_to_viz_delay_dur DURATION,
  -- The difference to the frame before.
  compositor_to_viz_delay_delta_dur DURATION,
  -- From that start to its end.
  viz_receive_compositor_frame_dur DURATION,
  -- The difference to the frame before.
  viz_receive_compositor_frame_delta_dur DURATION,
  -- From there to when it began to draw.
  viz_wait_for_draw_dur DURATION,
  -- The difference to the frame before.
  viz_wait_for_draw_delta_dur DURATION,
  -- From that start to when the swap was sent.
  viz_draw_and_swap_dur DURATION,
  -- The difference to the frame before.
  viz_draw_and_swap_delta_dur DURATION,
  -- The GPU's thread.
  viz_gpu_thread_utid JOINID(thread.id),
  -- From there to the GPU's thread.
  viz_to_gpu_delay_dur DURATION,
  -- The difference to the frame before.
  viz_to_gpu_delay_delta_dur DURATION,
  -- From that start to its end.
  viz_swap_buffers_dur DURATION,
  -- The difference to the frame before.
  viz_swap_buffers_delta_dur DURATION,
  -- From there to when the system took the buffer.
  viz_swap_buffers_to_latch_dur DURATION,
  -- The difference to the frame before.
  viz_swap_buffers_to_latch_delta_dur DURATION,
  -- How long it was drawn into.
  buffer_available_to_ready_dur DURATION,
  -- The difference to the frame before.
  buffer_available_to_ready_delta_dur DURATION,
  -- From there to when it was on the screen.
  viz_latch_to_presentation_dur DURATION,
  -- The difference to the frame before.
  viz_latch_to_presentation_delta_dur DURATION
) AS
SELECT
  u.frame_display_id AS id,
  u.scroll_id,
  u.previous_input_id AS last_input_before_this_frame_id,
  u.vsync_interval_ms,
  cast_int!(u.vsync_interval_ms * 1e6) AS vsync_interval_dur,
  u.is_janky,
  u.is_inertial,
  (
    SELECT sum(i.delta_y)
    FROM chrome_scroll_input_offsets AS i
    JOIN chrome_scroll_update_info AS o ON o.id = i.scroll_update_id
    WHERE o.frame_display_id = u.frame_display_id
  ) AS total_input_delta_y,
  d.delta_y AS presented_scrolled_delta_y,
  u.browser_uptime_dur,
  u.generation_ts AS first_input_generation_ts,
  u.input_reader_dur,
  u.input_dispatcher_dur,
  u.since_previous_generation_dur AS previous_last_input_to_first_input_generation_dur,
  u.presentation_timestamp AS presentation_ts,
  u.browser_utid,
  u.generation_to_browser_main_dur AS first_input_generation_to_browser_main_dur,
  _chrome_scroll_frame_stage_delta!(u.generation_to_browser_main_dur) AS first_input_generation_to_browser_main_delta_dur,
  u.touch_move_processing_dur AS first_input_touch_move_processing_dur,
  _chrome_scroll_frame_stage_delta!(u.touch_move_processing_dur) AS first_input_touch_move_processing_delta_dur,
  u.compositor_utid,
  u.browser_to_compositor_delay_dur AS first_input_browser_to_compositor_delay_dur,
  _chrome_scroll_frame_stage_delta!(u.browser_to_compositor_delay_dur) AS first_input_browser_to_compositor_delay_delta_dur,
  u.compositor_dispatch_dur AS first_input_compositor_dispatch_dur,
  _chrome_scroll_frame_stage_delta!(u.compositor_dispatch_dur) AS first_input_compositor_dispatch_delta_dur,
  u.compositor_dispatch_to_on_begin_frame_delay_dur AS first_input_compositor_dispatch_to_on_begin_frame_delay_dur,
  _chrome_scroll_frame_stage_delta!(u.compositor_dispatch_to_on_begin_frame_delay_dur) AS first_input_compositor_dispatch_to_on_begin_frame_delay_delta_dur,
  u.compositor_on_begin_frame_dur,
  _chrome_scroll_frame_stage_delta!(u.compositor_on_begin_frame_dur) AS compositor_on_begin_frame_delta_dur,
  u.compositor_on_begin_frame_to_generation_delay_dur,
  _chrome_scroll_frame_stage_delta!(u.compositor_on_begin_frame_to_generation_delay_dur) AS compositor_on_begin_frame_to_generation_delay_delta_dur,
  u.compositor_generate_frame_to_submit_frame_dur,
  _chrome_scroll_frame_stage_delta!(u.compositor_generate_frame_to_submit_frame_dur) AS compositor_generate_frame_to_submit_frame_delta_dur,
  u.compositor_submit_frame_dur,
  _chrome_scroll_frame_stage_delta!(u.compositor_submit_frame_dur) AS compositor_submit_frame_delta_dur,
  u.viz_compositor_utid,
  u.compositor_to_viz_delay_dur,
  _chrome_scroll_frame_stage_delta!(u.compositor_to_viz_delay_dur) AS compositor_to_viz_delay_delta_dur,
  u.viz_receive_compositor_frame_dur,
  _chrome_scroll_frame_stage_delta!(u.viz_receive_compositor_frame_dur) AS viz_receive_compositor_frame_delta_dur,
  u.viz_wait_for_draw_dur,
  _chrome_scroll_frame_stage_delta!(u.viz_wait_for_draw_dur) AS viz_wait_for_draw_delta_dur,
  u.viz_draw_and_swap_dur,
  _chrome_scroll_frame_stage_delta!(u.viz_draw_and_swap_dur) AS viz_draw_and_swap_delta_dur,
  u.viz_gpu_thread_utid,
  u.viz_to_gpu_delay_dur,
  _chrome_scroll_frame_stage_delta!(u.viz_to_gpu_delay_dur) AS viz_to_gpu_delay_delta_dur,
  u.viz_swap_buffers_dur,
  _chrome_scroll_frame_stage_delta!(u.viz_swap_buffers_dur) AS viz_swap_buffers_delta_dur,
  u.viz_swap_buffers_to_latch_dur,
  _chrome_scroll_frame_stage_delta!(u.viz_swap_buffers_to_latch_dur) AS viz_swap_buffers_to_latch_delta_dur,
  u.buffer_available_to_ready_dur,
  _chrome_scroll_frame_stage_delta!(u.buffer_available_to_ready_dur) AS buffer_available_to_ready_delta_dur,
  u.viz_latch_to_presentation_dur,
  _chrome_scroll_frame_stage_delta!(u.viz_latch_to_presentation_dur) AS viz_latch_to_presentation_delta_dur
FROM chrome_scroll_update_info AS u
LEFT JOIN chrome_presented_scroll_offsets AS d ON d.scroll_update_id = u.id
WHERE u.is_first_scroll_update_in_frame AND u.frame_display_id IS NOT NULL
WINDOW by_frame AS (ORDER BY u.generation_ts);

-- The steps of the way, by the columns of chrome_scroll_update_info that tell them.
CREATE PERFETTO TABLE chrome_scroll_update_info_step_templates(
  -- Name of the step.
  step_name STRING,
  -- Column with its start.
  ts_column_name STRING,
  -- Column with its length; NULL for a moment.
  dur_column_name STRING
) AS
WITH
  steps(step_name, ts_column_name, dur_column_name) AS (
    VALUES
      ('GenerationToBrowserMain', 'generation_ts', 'generation_to_browser_main_dur'),
      ('TouchMoveProcessing', 'touch_move_received_ts', 'touch_move_processing_dur'),
      ('ScrollUpdateProcessing', 'scroll_update_created_ts', 'scroll_update_processing_dur'),
      ('BrowserMainToRendererCompositor', 'scroll_update_created_end_ts', 'browser_to_compositor_delay_dur'),
      ('RendererCompositorDispatch', 'compositor_dispatch_ts', 'compositor_dispatch_dur'),
      ('RendererCompositorDispatchToOnBeginFrame', 'compositor_dispatch_end_ts', 'compositor_dispatch_to_on_begin_frame_delay_dur'),
      ('RendererCompositorBeginFrame', 'compositor_on_begin_frame_ts', 'compositor_on_begin_frame_dur'),
      ('RendererCompositorBeginToGenerateFrame', 'compositor_on_begin_frame_end_ts', 'compositor_on_begin_frame_to_generation_delay_dur'),
      ('RendererCompositorGenerateToSubmitFrame', 'compositor_generate_compositor_frame_ts', 'compositor_generate_frame_to_submit_frame_dur'),
      ('RendererCompositorSubmitFrame', 'compositor_submit_compositor_frame_ts', 'compositor_submit_frame_dur'),
      ('RendererCompositorToViz', 'compositor_submit_compositor_frame_end_ts', 'compositor_to_viz_delay_dur'),
      ('VizReceiveFrame', 'viz_receive_compositor_frame_ts', 'viz_receive_compositor_frame_dur'),
      ('VizReceiveToDrawFrame', 'viz_receive_compositor_frame_end_ts', 'viz_wait_for_draw_dur'),
      ('VizDrawToSwapFrame', 'viz_draw_and_swap_ts', 'viz_draw_and_swap_dur'),
      ('VizToGpu', 'viz_send_buffer_swap_end_ts', 'viz_to_gpu_delay_dur'),
      ('VizSwapBuffers', 'viz_swap_buffers_ts', 'viz_swap_buffers_dur'),
      ('VizSwapBuffersToLatch', 'viz_swap_buffers_end_ts', 'viz_swap_buffers_to_latch_dur'),
      ('VizBufferAvailableToReady', 'buffer_available_timestamp', 'buffer_available_to_ready_dur'),
      ('VizLatchToPresentation', 'latch_timestamp', 'viz_latch_to_presentation_dur'),
      ('Presentation', 'presentation_timestamp', NULL)
  )
SELECT step_name, ts_column_name, dur_column_name FROM steps;

-- The two halves by input, without what is worked out of them: when it was where, and by which threads …
CREATE PERFETTO VIEW _scroll_update_input_timestamps_and_metadata AS
SELECT
  id,
  scroll_id,
  presented_in_frame_id,
  is_presented,
  is_janky,
  is_inertial,
  is_first_scroll_update_in_scroll,
  is_first_scroll_update_in_frame,
  generation_ts,
  browser_utid,
  touch_move_received_slice_id,
  touch_move_received_ts,
  scroll_update_created_slice_id,
  scroll_update_created_ts,
  scroll_update_created_end_ts,
  compositor_utid,
  compositor_dispatch_slice_id,
  compositor_dispatch_ts,
  compositor_dispatch_end_ts,
  compositor_coalesced_input_handled_slice_id,
  compositor_coalesced_input_handled_ts,
  compositor_coalesced_input_handled_end_ts
FROM chrome_scroll_update_input_pipeline;

-- … and by frame.
CREATE PERFETTO VIEW _scroll_update_frame_timestamps_and_metadata AS
SELECT
  id,
  display_trace_id,
  vsync_interval_ms,
  compositor_resample_slice_id,
  compositor_resample_ts,
  compositor_generate_compositor_frame_slice_id,
  compositor_generate_compositor_frame_ts,
  compositor_submit_compositor_frame_slice_id,
  compositor_submit_compositor_frame_ts,
  compositor_submit_compositor_frame_end_ts,
  viz_compositor_utid,
  viz_receive_compositor_frame_slice_id,
  viz_receive_compositor_frame_ts,
  viz_receive_compositor_frame_end_ts,
  viz_draw_and_swap_slice_id,
  viz_draw_and_swap_ts,
  viz_send_buffer_swap_slice_id,
  viz_send_buffer_swap_end_ts,
  viz_gpu_thread_utid,
  viz_swap_buffers_slice_id,
  viz_swap_buffers_ts,
  viz_swap_buffers_end_ts,
  buffer_available_timestamp,
  buffer_ready_timestamp,
  latch_timestamp,
  presentation_timestamp
FROM chrome_scroll_update_frame_pipeline;
