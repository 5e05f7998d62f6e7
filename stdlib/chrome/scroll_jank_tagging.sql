-- What held up frames of scrolls that were late.

INCLUDE PERFETTO MODULE chrome.chrome_scrolls;
INCLUDE PERFETTO MODULE chrome.chrome_scrolls_v4;
INCLUDE PERFETTO MODULE chrome.graphics_pipeline;

-- The frames that were late, with some times in frames of the screen: between their input and the one before, and of the two waits.
CREATE PERFETTO MACRO _prepare_janky_scroll_frames(
  -- All frames.
  scroll_frames TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT
    *,
    CAST(previous_last_input_to_first_input_generation_dur AS REAL) / vsync_interval_dur AS previous_input_delta_to_vsync_ratio,
    CAST(first_input_compositor_dispatch_to_on_begin_frame_delay_dur AS REAL) / vsync_interval_dur AS wait_for_begin_frame_delta_to_vsync_ratio,
    CAST(viz_wait_for_draw_dur AS REAL) / vsync_interval_dur AS viz_wait_for_draw_to_vsync_ratio
  FROM $scroll_frames
  WHERE is_janky
);

-- The late frames that were in a stage for long: (frame_id, tag).
CREATE PERFETTO MACRO _chrome_scroll_jank_tag_long_stage(
  -- The late frames.
  janky_scroll_frames TableOrSubquery,
  -- Column with the time in the stage.
  stage ColumnName,
  -- What to call it.
  tag Expr,
  -- What is long, in milliseconds.
  threshold_ms Expr
)
RETURNS TableOrSubquery AS
(
  SELECT id AS frame_id, $tag AS tag FROM $janky_scroll_frames WHERE $stage > $threshold_ms * 1000000
);

-- What may have held up late frames: (frame_id, tag), none or several a frame. A step is long from a frame of a 60 Hz screen on; what
-- comes before the browser, handing over to the GPU, swapping and drawing should be quick, and waiting for the system takes a frame even
-- when all is well. With one input a frame or less, its time decides: a fifth more than a frame apart is a hole in the input (for which
-- Chrome itself answers in a fling), and else a wait of two thirds of a frame is one for a CPU. A slow finger, and more than 3 ms longer
-- in the system than before or in its input threads, count by themselves.
CREATE PERFETTO MACRO _assign_scroll_jank_tags_to_frames(
  -- The late frames, as _prepare_janky_scroll_frames! gives them.
  janky_scroll_frames TableOrSubquery,
  -- How far the finger moved for each, in pixels; NULL: not known.
  abs_scroll_delta Expr
)
RETURNS TableOrSubquery AS
(
    SELECT frame_id, tag FROM _chrome_scroll_jank_tag_long_stage!($janky_scroll_frames, first_input_generation_to_browser_main_dur, 'long_generation_to_browser_main', 6)
    UNION ALL
    SELECT frame_id, tag FROM _chrome_scroll_jank_tag_long_stage!($janky_scroll_frames, first_input_touch_move_processing_dur, 'long_touch_move', 16)
    UNION ALL
    SELECT frame_id, tag FROM _chrome_scroll_jank_tag_long_stage!($janky_scroll_frames, first_input_browser_to_compositor_delay_dur, 'long_browser_to_compositor', 16)
    UNION ALL
    SELECT frame_id, tag FROM _chrome_scroll_jank_tag_long_stage!($janky_scroll_frames, first_input_compositor_dispatch_dur, 'long_compositor_dispatch', 16)
    UNION ALL
    SELECT frame_id, tag FROM _chrome_scroll_jank_tag_long_stage!($janky_scroll_frames, first_input_compositor_dispatch_to_on_begin_frame_delay_dur, 'long_wait_for_begin_frame', 16)
    UNION ALL
    SELECT frame_id, tag FROM _chrome_scroll_jank_tag_long_stage!($janky_scroll_frames, compositor_on_begin_frame_dur, 'long_on_begin_frame', 16)
    UNION ALL
    SELECT frame_id, tag FROM _chrome_scroll_jank_tag_long_stage!($janky_scroll_frames, compositor_on_begin_frame_to_generation_delay_dur, 'long_on_begin_frame_to_generation', 16)
    UNION ALL
    SELECT frame_id, tag FROM _chrome_scroll_jank_tag_long_stage!($janky_scroll_frames, compositor_generate_frame_to_submit_frame_dur, 'long_generate_to_submit', 16)
    UNION ALL
    SELECT frame_id, tag FROM _chrome_scroll_jank_tag_long_stage!($janky_scroll_frames, compositor_submit_frame_dur, 'long_submit_frame', 16)
    UNION ALL
    SELECT frame_id, tag FROM _chrome_scroll_jank_tag_long_stage!($janky_scroll_frames, compositor_to_viz_delay_dur, 'long_compositor_to_viz', 16)
    UNION ALL
    SELECT frame_id, tag FROM _chrome_scroll_jank_tag_long_stage!($janky_scroll_frames, viz_receive_compositor_frame_dur, 'long_viz_receive_frame', 16)
    UNION ALL
    SELECT frame_id, tag FROM _chrome_scroll_jank_tag_long_stage!($janky_scroll_frames, viz_wait_for_draw_dur, 'long_viz_wait_for_draw', 16)
    UNION ALL
    SELECT frame_id, tag FROM _chrome_scroll_jank_tag_long_stage!($janky_scroll_frames, viz_draw_and_swap_dur, 'long_viz_draw_and_swap', 16)
    UNION ALL
    SELECT frame_id, tag FROM _chrome_scroll_jank_tag_long_stage!($janky_scroll_frames, viz_to_gpu_delay_dur, 'long_viz_to_gpu', 6)
    UNION ALL
    SELECT frame_id, tag FROM _chrome_scroll_jank_tag_long_stage!($janky_scroll_frames, viz_swap_buffers_dur, 'long_viz_swap_buffers', 6)
    UNION ALL
    SELECT frame_id, tag FROM _chrome_scroll_jank_tag_long_stage!($janky_scroll_frames, viz_swap_buffers_to_latch_dur, 'long_viz_swap_to_latch', 17)
    UNION ALL
    SELECT frame_id, tag FROM _chrome_scroll_jank_tag_long_stage!($janky_scroll_frames, buffer_available_to_ready_dur, 'long_buffer_available_to_ready', 6)
    UNION ALL
    SELECT id, 'inconsistent_input'
    FROM $janky_scroll_frames
    WHERE previous_input_delta_to_vsync_ratio >= 1.2 AND NOT is_inertial
    UNION ALL
    SELECT id, 'inconsistent_fling_input'
    FROM $janky_scroll_frames
    WHERE previous_input_delta_to_vsync_ratio >= 1.2 AND is_inertial
    UNION ALL
    SELECT id, 'infrequent_input_cc_scheduling'
    FROM $janky_scroll_frames
    WHERE previous_input_delta_to_vsync_ratio BETWEEN 0.75 AND 1.2 AND wait_for_begin_frame_delta_to_vsync_ratio > 0.66
    UNION ALL
    SELECT id, 'infrequent_input_viz_scheduling'
    FROM $janky_scroll_frames
    WHERE previous_input_delta_to_vsync_ratio BETWEEN 0.75 AND 1.2 AND viz_wait_for_draw_to_vsync_ratio > 0.66
    UNION ALL
    SELECT id, 'generation_to_browser_main_spike'
    FROM $janky_scroll_frames
    WHERE first_input_generation_to_browser_main_delta_dur > 3000000
    UNION ALL
    SELECT id, 'slow_input'
    FROM $janky_scroll_frames
    WHERE $abs_scroll_delta <= 2.001
    UNION ALL
    SELECT id, 'long_generation_to_dispatch_end_dur'
    FROM $janky_scroll_frames
    WHERE input_reader_dur + input_dispatcher_dur > 3000000
);

-- One row a late frame, its tags with commas: (frame_id, tagged, tags).
CREATE PERFETTO MACRO _consolidate_tagged_janky_scroll_frames(
  -- The late frames.
  janky_scroll_frames TableOrSubquery,
  -- Their tags: frame_id, tag.
  jank_tags_table TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT f.id AS frame_id, max(t.tag) IS NOT NULL AS tagged, group_concat(t.tag ORDER BY t.tag) AS tags
  FROM $janky_scroll_frames AS f
  LEFT JOIN $jank_tags_table AS t ON t.frame_id = f.id
  GROUP BY f.id
);

-- The late frames, as Chrome's first measure has it …
CREATE PERFETTO TABLE _chrome_janky_scroll_frames AS
SELECT * FROM _prepare_janky_scroll_frames!(chrome_scroll_frame_info);

-- … and as the fourth has it.
CREATE PERFETTO TABLE _chrome_janky_scroll_frames_v4 AS
SELECT * FROM _prepare_janky_scroll_frames!(chrome_scroll_frame_info_v4);

-- Frames that were late, each with what may have held it up.
CREATE PERFETTO TABLE chrome_scroll_jank_tags(
  -- The frame.
  frame_id LONG,
  -- What may have held it up.
  tag STRING
) AS
SELECT frame_id, tag FROM _assign_scroll_jank_tags_to_frames!(_chrome_janky_scroll_frames, abs(total_input_delta_y))
UNION ALL
-- the frame of the input before was dropped
SELECT
  f.id,
  'dropped_previous_frame/' || coalesce(extract_arg(s.arg_set_id, 'chrome_graphics_pipeline.frame_skipped_reason'), '')
FROM _chrome_janky_scroll_frames AS f
JOIN chrome_scroll_update_refs AS r ON r.scroll_update_latency_id = f.last_input_before_this_frame_id
JOIN chrome_graphics_pipeline_surface_frame_steps AS d
  ON d.surface_frame_trace_id = r.surface_frame_id AND d.step = 'STEP_DID_NOT_PRODUCE_COMPOSITOR_FRAME'
JOIN slice AS s ON s.id = d.id;

-- The same with one row a frame, also for those of which nothing is known.
CREATE PERFETTO TABLE chrome_tagged_janky_scroll_frames(
  -- The frame.
  frame_id LONG,
  -- Whether anything is known.
  tagged BOOL,
  -- All that may have held it up, with commas.
  tags STRING
) AS
SELECT frame_id, tagged, tags
FROM _consolidate_tagged_janky_scroll_frames!(_chrome_janky_scroll_frames, chrome_scroll_jank_tags);

-- Frames that were late, each with what may have held it up.
CREATE PERFETTO TABLE chrome_scroll_jank_tags_v4(
  -- The frame.
  frame_id JOINID(slice.id),
  -- What may have held it up.
  tag STRING
) AS
SELECT frame_id, tag FROM _assign_scroll_jank_tags_to_frames!(_chrome_janky_scroll_frames_v4, real_abs_total_raw_delta_pixels);

-- The same with one row a frame, also for those of which nothing is known.
CREATE PERFETTO TABLE chrome_tagged_janky_scroll_frames_v4(
  -- The frame.
  frame_id JOINID(slice.id),
  -- Whether anything is known.
  tagged BOOL,
  -- All that may have held it up, with commas.
  tags STRING
) AS
SELECT frame_id, tagged, tags
FROM _consolidate_tagged_janky_scroll_frames!(_chrome_janky_scroll_frames_v4, chrome_scroll_jank_tags_v4);
