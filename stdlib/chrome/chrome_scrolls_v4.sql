-- Frames with scrolls as version 4 of Chrome's measure of jank sees them, with the way of their first input.

INCLUDE PERFETTO MODULE chrome.chrome_scrolls;
INCLUDE PERFETTO MODULE chrome.scroll_jank_v4;

-- What only the input of a finger has: NULL when Chrome made the first input up.
CREATE PERFETTO MACRO _if_real_first_scroll_update(
  -- The value.
  expression Expr
)
RETURNS Expr AS iif(r.first_scroll_update_type = 'REAL', $expression, NULL);

-- What only a frame that changed the screen has.
CREATE PERFETTO MACRO _if_damaging_frame(
  -- The value.
  expression Expr
)
RETURNS Expr AS iif(r.damage_type = 'DAMAGING', $expression, NULL);

-- The time in a stage less that of the frame before in the scroll.
CREATE PERFETTO MACRO _stage_dur_delta_v4(
  -- Column with the time.
  stage ColumnName
)
RETURNS Expr AS ($stage - lag($stage) OVER by_frame);

-- The frames. What comes of the finger is NULL when Chrome made the first input up; what comes behind the compositor is NULL when
-- the frame did not change the screen.
CREATE PERFETTO TABLE chrome_scroll_frame_info_v4(
  -- The slice 'ScrollJankV4'.
  id JOINID(slice.id),
  -- The first input of the frame.
  scroll_update_latency_id LONG,
  -- Its scroll.
  scroll_id LONG,
  -- Time between two frames of the screen.
  vsync_interval_dur DURATION,
  -- Whether the frame is janky.
  is_janky BOOL,
  -- Whether it is a fling.
  is_inertial BOOL,
  -- Place of the frame in its scroll, from 1.
  frame_index_in_scroll LONG,
  -- How far the finger moved, in pixels, without a sign.
  real_abs_total_raw_delta_pixels DOUBLE,
  -- How far the finger moved, in pixels.
  real_total_raw_delta_pixels DOUBLE,
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
  -- The browser's main thread.
  browser_utid JOINID(thread.id),
  -- From there to when the browser's main thread got it.
  first_input_generation_to_browser_main_dur DURATION,
  -- The difference to the frame before in the scroll.
  first_input_generation_to_browser_main_delta_dur DURATION,
  -- Slice in which the browser got the touch.
  first_input_touch_move_received_slice_id JOINID(slice.id),
  -- Its start.
  first_input_touch_move_received_ts TIMESTAMP,
  -- How long the browser took to make a scroll of the touch.
  first_input_touch_move_processing_dur DURATION,
  -- The difference to the frame before in the scroll.
  first_input_touch_move_processing_delta_dur DURATION,
  -- Slice in which the browser made the scroll.
  first_input_scroll_update_created_slice_id JOINID(slice.id),
  -- Its start.
  first_input_scroll_update_created_ts TIMESTAMP,
  -- Its length.
  first_input_scroll_update_processing_dur DURATION,
  -- The difference to the frame before in the scroll.
  first_input_scroll_update_processing_delta_dur DURATION,
  -- Its end.
  first_input_scroll_update_created_end_ts TIMESTAMP,
  -- From there to the renderer's compositor.
  first_input_browser_to_compositor_delay_dur DURATION,
  -- The difference to the frame before in the scroll.
  first_input_browser_to_compositor_delay_delta_dur DURATION,
  -- The renderer's compositor.
  compositor_utid JOINID(thread.id),
  -- Slice in which the compositor got the scroll.
  first_input_compositor_dispatch_slice_id JOINID(slice.id),
  -- Its start, or that of the task around it.
  first_input_compositor_dispatch_ts TIMESTAMP,
  -- From that start to its end.
  first_input_compositor_dispatch_dur DURATION,
  -- The difference to the frame before in the scroll.
  first_input_compositor_dispatch_delta_dur DURATION,
  -- Its end.
  first_input_compositor_dispatch_end_ts TIMESTAMP,
  -- From there to when the compositor began with the scroll in a frame.
  first_input_compositor_dispatch_to_on_begin_frame_delay_dur DURATION,
  -- The difference to the frame before in the scroll.
  first_input_compositor_dispatch_to_on_begin_frame_delay_delta_dur DURATION,
  -- Slice in which the compositor put scrolls of a frame together.
  compositor_resample_slice_id JOINID(slice.id),
  -- Slice in which the compositor applied the scroll.
  compositor_coalesced_input_handled_slice_id JOINID(slice.id),
  -- When the compositor began with the scroll in a frame.
  compositor_on_begin_frame_ts TIMESTAMP,
  -- How long it took for it.
  compositor_on_begin_frame_dur DURATION,
  -- The difference to the frame before in the scroll.
  compositor_on_begin_frame_delta_dur DURATION,
  -- When it was done with it.
  compositor_on_begin_frame_end_ts TIMESTAMP,
  -- From there to when it began to make the frame.
  compositor_on_begin_frame_to_generation_delay_dur DURATION,
  -- The difference to the frame before in the scroll.
  compositor_on_begin_frame_to_generation_delay_delta_dur DURATION,
  -- Slice in which the compositor began to make the frame.
  compositor_generate_compositor_frame_slice_id JOINID(slice.id),
  -- Its start, or that of the task around it.
  compositor_generate_compositor_frame_ts TIMESTAMP,
  -- From there to when it submitted the frame.
  compositor_generate_frame_to_submit_frame_dur DURATION,
  -- The difference to the frame before in the scroll.
  compositor_generate_frame_to_submit_frame_delta_dur DURATION,
  -- Slice in which it did.
  compositor_submit_compositor_frame_slice_id JOINID(slice.id),
  -- Its start.
  compositor_submit_compositor_frame_ts TIMESTAMP,
  -- Its length.
  compositor_submit_frame_dur DURATION,
  -- The difference to the frame before in the scroll.
  compositor_submit_frame_delta_dur DURATION,
  -- Its end.
  compositor_submit_compositor_frame_end_ts TIMESTAMP,
  -- The GPU process' compositor.
  viz_compositor_utid JOINID(thread.id),
  -- From there to the GPU process' compositor.
  compositor_to_viz_delay_dur DURATION,
  -- The difference to the frame before in the scroll.
  compositor_to_viz_delay_delta_dur DURATION,
  -- Slice in which it got the frame.
  viz_receive_compositor_frame_slice_id JOINID(slice.id),
  -- Its start, or that of the task around it.
  viz_receive_compositor_frame_ts TIMESTAMP,
  -- From that start to its end.
  viz_receive_compositor_frame_dur DURATION,
  -- The difference to the frame before in the scroll.
  viz_receive_compositor_frame_delta_dur DURATION,
  -- Its end.
  viz_receive_compositor_frame_end_ts TIMESTAMP,
  -- From there to when it began to draw.
  viz_wait_for_draw_dur DURATION,
  -- The difference to the frame before in the scroll.
  viz_wait_for_draw_delta_dur DURATION,
  -- Slice in which it drew.
  viz_draw_and_swap_slice_id JOINID(slice.id),
  -- Its start, or that of the task around it.
  viz_draw_and_swap_ts TIMESTAMP,
  -- From that start to when the swap was sent.
  viz_draw_and_swap_dur DURATION,
  -- The difference to the frame before in the scroll.
  viz_draw_and_swap_delta_dur DURATION,
  -- Slice in which the swap was sent.
  viz_send_buffer_swap_slice_id JOINID(slice.id),
  -- Its end.
  viz_send_buffer_swap_end_ts TIMESTAMP,
  -- The GPU's thread.
  viz_gpu_thread_utid JOINID(thread.id),
  -- From there to the GPU's thread.
  viz_to_gpu_delay_dur DURATION,
  -- The difference to the frame before in the scroll.
  viz_to_gpu_delay_delta_dur DURATION,
  -- Slice in which it swapped the buffers.
  viz_swap_buffers_slice_id JOINID(slice.id),
  -- Its start, or that of the task around it.
  viz_swap_buffers_ts TIMESTAMP,
  -- From that start to its end.
  viz_swap_buffers_dur DURATION,
  -- The difference to the frame before in the scroll.
  viz_swap_buffers_delta_dur DURATION,
  -- Its end.
  viz_swap_buffers_end_ts TIMESTAMP,
  -- From there to when the system took the buffer.
  viz_swap_buffers_to_latch_dur DURATION,
  -- The difference to the frame before in the scroll.
  viz_swap_buffers_to_latch_delta_dur DURATION,
  -- When there was a buffer to draw into.
  buffer_available_timestamp TIMESTAMP,
  -- How long it was drawn into.
  buffer_available_to_ready_dur DURATION,
  -- The difference to the frame before in the scroll.
  buffer_available_to_ready_delta_dur DURATION,
  -- When the buffer was drawn.
  buffer_ready_timestamp TIMESTAMP,
  -- When the system took the buffer.
  latch_timestamp TIMESTAMP,
  -- From there to when it was on the screen.
  viz_latch_to_presentation_dur DURATION,
  -- The difference to the frame before in the scroll.
  viz_latch_to_presentation_delta_dur DURATION,
  -- When the frame was on the screen.
  presentation_ts TIMESTAMP
) AS
SELECT
  r.id,
  r.first_event_latency_id AS scroll_update_latency_id,
  u.scroll_id,
  r.vsync_interval AS vsync_interval_dur,
  r.is_janky,
  r.real_max_abs_inertial_raw_delta_pixels IS NOT NULL AS is_inertial,
  row_number() OVER by_frame AS frame_index_in_scroll,
  _if_real_first_scroll_update!(r.real_abs_total_raw_delta_pixels) AS real_abs_total_raw_delta_pixels,
  _if_real_first_scroll_update!(r.real_total_raw_delta_pixels) AS real_total_raw_delta_pixels,
  _if_real_first_scroll_update!(u.browser_uptime_dur) AS browser_uptime_dur,
  _if_real_first_scroll_update!(u.generation_ts) AS first_input_generation_ts,
  _if_real_first_scroll_update!(u.input_reader_dur) AS input_reader_dur,
  _if_real_first_scroll_update!(u.input_dispatcher_dur) AS input_dispatcher_dur,
  _if_real_first_scroll_update!(u.generation_ts - max(r.real_last_input_generation_ts) OVER (by_frame ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS previous_last_input_to_first_input_generation_dur,
  _if_real_first_scroll_update!(u.browser_utid) AS browser_utid,
  _if_real_first_scroll_update!(u.generation_to_browser_main_dur) AS first_input_generation_to_browser_main_dur,
  _if_real_first_scroll_update!(_stage_dur_delta_v4!(u.generation_to_browser_main_dur)) AS first_input_generation_to_browser_main_delta_dur,
  _if_real_first_scroll_update!(u.touch_move_received_slice_id) AS first_input_touch_move_received_slice_id,
  _if_real_first_scroll_update!(u.touch_move_received_ts) AS first_input_touch_move_received_ts,
  _if_real_first_scroll_update!(u.touch_move_processing_dur) AS first_input_touch_move_processing_dur,
  _if_real_first_scroll_update!(_stage_dur_delta_v4!(u.touch_move_processing_dur)) AS first_input_touch_move_processing_delta_dur,
  _if_real_first_scroll_update!(u.scroll_update_created_slice_id) AS first_input_scroll_update_created_slice_id,
  _if_real_first_scroll_update!(u.scroll_update_created_ts) AS first_input_scroll_update_created_ts,
  _if_real_first_scroll_update!(u.scroll_update_processing_dur) AS first_input_scroll_update_processing_dur,
  _if_real_first_scroll_update!(_stage_dur_delta_v4!(u.scroll_update_processing_dur)) AS first_input_scroll_update_processing_delta_dur,
  _if_real_first_scroll_update!(u.scroll_update_created_end_ts) AS first_input_scroll_update_created_end_ts,
  _if_real_first_scroll_update!(u.browser_to_compositor_delay_dur) AS first_input_browser_to_compositor_delay_dur,
  _if_real_first_scroll_update!(_stage_dur_delta_v4!(u.browser_to_compositor_delay_dur)) AS first_input_browser_to_compositor_delay_delta_dur,
  u.compositor_utid,
  u.compositor_dispatch_slice_id AS first_input_compositor_dispatch_slice_id,
  u.compositor_dispatch_ts AS first_input_compositor_dispatch_ts,
  u.compositor_dispatch_dur AS first_input_compositor_dispatch_dur,
  _stage_dur_delta_v4!(u.compositor_dispatch_dur) AS first_input_compositor_dispatch_delta_dur,
  u.compositor_dispatch_end_ts AS first_input_compositor_dispatch_end_ts,
  _if_damaging_frame!(u.compositor_dispatch_to_on_begin_frame_delay_dur) AS first_input_compositor_dispatch_to_on_begin_frame_delay_dur,
  _if_damaging_frame!(_stage_dur_delta_v4!(u.compositor_dispatch_to_on_begin_frame_delay_dur)) AS first_input_compositor_dispatch_to_on_begin_frame_delay_delta_dur,
  _if_damaging_frame!(u.compositor_resample_slice_id) AS compositor_resample_slice_id,
  _if_damaging_frame!(u.compositor_coalesced_input_handled_slice_id) AS compositor_coalesced_input_handled_slice_id,
  _if_damaging_frame!(u.compositor_on_begin_frame_ts) AS compositor_on_begin_frame_ts,
  _if_damaging_frame!(u.compositor_on_begin_frame_dur) AS compositor_on_begin_frame_dur,
  _if_damaging_frame!(_stage_dur_delta_v4!(u.compositor_on_begin_frame_dur)) AS compositor_on_begin_frame_delta_dur,
  _if_damaging_frame!(u.compositor_on_begin_frame_end_ts) AS compositor_on_begin_frame_end_ts,
  _if_damaging_frame!(u.compositor_on_begin_frame_to_generation_delay_dur) AS compositor_on_begin_frame_to_generation_delay_dur,
  _if_damaging_frame!(_stage_dur_delta_v4!(u.compositor_on_begin_frame_to_generation_delay_dur)) AS compositor_on_begin_frame_to_generation_delay_delta_dur,
  _if_damaging_frame!(u.compositor_generate_compositor_frame_slice_id) AS compositor_generate_compositor_frame_slice_id,
  _if_damaging_frame!(u.compositor_generate_compositor_frame_ts) AS compositor_generate_compositor_frame_ts,
  _if_damaging_frame!(u.compositor_generate_frame_to_submit_frame_dur) AS compositor_generate_frame_to_submit_frame_dur,
  _if_damaging_frame!(_stage_dur_delta_v4!(u.compositor_generate_frame_to_submit_frame_dur)) AS compositor_generate_frame_to_submit_frame_delta_dur,
  _if_damaging_frame!(u.compositor_submit_compositor_frame_slice_id) AS compositor_submit_compositor_frame_slice_id,
  _if_damaging_frame!(u.compositor_submit_compositor_frame_ts) AS compositor_submit_compositor_frame_ts,
  _if_damaging_frame!(u.compositor_submit_frame_dur) AS compositor_submit_frame_dur,
  _if_damaging_frame!(_stage_dur_delta_v4!(u.compositor_submit_frame_dur)) AS compositor_submit_frame_delta_dur,
  _if_damaging_frame!(u.compositor_submit_compositor_frame_end_ts) AS compositor_submit_compositor_frame_end_ts,
  _if_damaging_frame!(u.viz_compositor_utid) AS viz_compositor_utid,
  _if_damaging_frame!(u.compositor_to_viz_delay_dur) AS compositor_to_viz_delay_dur,
  _if_damaging_frame!(_stage_dur_delta_v4!(u.compositor_to_viz_delay_dur)) AS compositor_to_viz_delay_delta_dur,
  _if_damaging_frame!(u.viz_receive_compositor_frame_slice_id) AS viz_receive_compositor_frame_slice_id,
  _if_damaging_frame!(u.viz_receive_compositor_frame_ts) AS viz_receive_compositor_frame_ts,
  _if_damaging_frame!(u.viz_receive_compositor_frame_dur) AS viz_receive_compositor_frame_dur,
  _if_damaging_frame!(_stage_dur_delta_v4!(u.viz_receive_compositor_frame_dur)) AS viz_receive_compositor_frame_delta_dur,
  _if_damaging_frame!(u.viz_receive_compositor_frame_end_ts) AS viz_receive_compositor_frame_end_ts,
  _if_damaging_frame!(u.viz_wait_for_draw_dur) AS viz_wait_for_draw_dur,
  _if_damaging_frame!(_stage_dur_delta_v4!(u.viz_wait_for_draw_dur)) AS viz_wait_for_draw_delta_dur,
  _if_damaging_frame!(u.viz_draw_and_swap_slice_id) AS viz_draw_and_swap_slice_id,
  _if_damaging_frame!(u.viz_draw_and_swap_ts) AS viz_draw_and_swap_ts,
  _if_damaging_frame!(u.viz_draw_and_swap_dur) AS viz_draw_and_swap_dur,
  _if_damaging_frame!(_stage_dur_delta_v4!(u.viz_draw_and_swap_dur)) AS viz_draw_and_swap_delta_dur,
  _if_damaging_frame!(u.viz_send_buffer_swap_slice_id) AS viz_send_buffer_swap_slice_id,
  _if_damaging_frame!(u.viz_send_buffer_swap_end_ts) AS viz_send_buffer_swap_end_ts,
  _if_damaging_frame!(u.viz_gpu_thread_utid) AS viz_gpu_thread_utid,
  _if_damaging_frame!(u.viz_to_gpu_delay_dur) AS viz_to_gpu_delay_dur,
  _if_damaging_frame!(_stage_dur_delta_v4!(u.viz_to_gpu_delay_dur)) AS viz_to_gpu_delay_delta_dur,
  _if_damaging_frame!(u.viz_swap_buffers_slice_id) AS viz_swap_buffers_slice_id,
  _if_damaging_frame!(u.viz_swap_buffers_ts) AS viz_swap_buffers_ts,
  _if_damaging_frame!(u.viz_swap_buffers_dur) AS viz_swap_buffers_dur,
  _if_damaging_frame!(_stage_dur_delta_v4!(u.viz_swap_buffers_dur)) AS viz_swap_buffers_delta_dur,
  _if_damaging_frame!(u.viz_swap_buffers_end_ts) AS viz_swap_buffers_end_ts,
  _if_damaging_frame!(u.viz_swap_buffers_to_latch_dur) AS viz_swap_buffers_to_latch_dur,
  _if_damaging_frame!(_stage_dur_delta_v4!(u.viz_swap_buffers_to_latch_dur)) AS viz_swap_buffers_to_latch_delta_dur,
  _if_damaging_frame!(u.buffer_available_timestamp) AS buffer_available_timestamp,
  _if_damaging_frame!(u.buffer_available_to_ready_dur) AS buffer_available_to_ready_dur,
  _if_damaging_frame!(_stage_dur_delta_v4!(u.buffer_available_to_ready_dur)) AS buffer_available_to_ready_delta_dur,
  _if_damaging_frame!(u.buffer_ready_timestamp) AS buffer_ready_timestamp,
  _if_damaging_frame!(u.latch_timestamp) AS latch_timestamp,
  _if_damaging_frame!(u.viz_latch_to_presentation_dur) AS viz_latch_to_presentation_dur,
  _if_damaging_frame!(_stage_dur_delta_v4!(u.viz_latch_to_presentation_dur)) AS viz_latch_to_presentation_delta_dur,
  _if_damaging_frame!(u.presentation_timestamp) AS presentation_ts
FROM chrome_scroll_jank_v4_results AS r
LEFT JOIN chrome_scroll_update_info AS u ON u.id = r.first_event_latency_id
WINDOW by_frame AS (PARTITION BY u.scroll_id ORDER BY r.ts)
ORDER BY r.ts;
