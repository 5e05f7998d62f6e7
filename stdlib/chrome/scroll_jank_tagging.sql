-- What held up frames of scrolls that were late.

INCLUDE PERFETTO MODULE chrome.chrome_scrolls;
INCLUDE PERFETTO MODULE chrome.chrome_scrolls_v4;

-- Tags of janky frames. A step is long from a frame of a 60 Hz screen on; handing over to the GPU and swapping should be quick, and
-- waiting for the system takes a frame even when all is well. With one input a frame or less, its time decides: a fifth more than
-- a frame apart is a hole in the input (for which Chrome itself answers in a fling), and else a wait of two thirds of a frame is
-- one for a CPU.
CREATE PERFETTO MACRO _chrome_scroll_tags(
  -- The frames.
  frames TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH
    _jank_frames AS MATERIALIZED (
      SELECT *, CAST(previous_last_input_to_first_input_generation_dur AS REAL) / vsync_interval_dur AS input_gap
      FROM $frames
      WHERE is_janky
    )
    SELECT id AS frame_id, 'long_generation_to_browser_main' AS tag FROM _jank_frames WHERE first_input_generation_to_browser_main_dur > 16000000
    UNION ALL
    SELECT id, 'long_touch_move' FROM _jank_frames WHERE first_input_touch_move_processing_dur > 16000000
    UNION ALL
    SELECT id, 'long_browser_to_compositor' FROM _jank_frames WHERE first_input_browser_to_compositor_delay_dur > 16000000
    UNION ALL
    SELECT id, 'long_compositor_dispatch' FROM _jank_frames WHERE first_input_compositor_dispatch_dur > 16000000
    UNION ALL
    SELECT id, 'long_wait_for_begin_frame' FROM _jank_frames WHERE first_input_compositor_dispatch_to_on_begin_frame_delay_dur > 16000000
    UNION ALL
    SELECT id, 'long_on_begin_frame' FROM _jank_frames WHERE compositor_on_begin_frame_dur > 16000000
    UNION ALL
    SELECT id, 'long_on_begin_frame_to_generation' FROM _jank_frames WHERE compositor_on_begin_frame_to_generation_delay_dur > 16000000
    UNION ALL
    SELECT id, 'long_generate_to_submit' FROM _jank_frames WHERE compositor_generate_frame_to_submit_frame_dur > 16000000
    UNION ALL
    SELECT id, 'long_submit_frame' FROM _jank_frames WHERE compositor_submit_frame_dur > 16000000
    UNION ALL
    SELECT id, 'long_compositor_to_viz' FROM _jank_frames WHERE compositor_to_viz_delay_dur > 16000000
    UNION ALL
    SELECT id, 'long_viz_receive_frame' FROM _jank_frames WHERE viz_receive_compositor_frame_dur > 16000000
    UNION ALL
    SELECT id, 'long_viz_wait_for_draw' FROM _jank_frames WHERE viz_wait_for_draw_dur > 16000000
    UNION ALL
    SELECT id, 'long_viz_draw_and_swap' FROM _jank_frames WHERE viz_draw_and_swap_dur > 16000000
    UNION ALL
    SELECT id, 'long_viz_to_gpu' FROM _jank_frames WHERE viz_to_gpu_delay_dur > 6000000
    UNION ALL
    SELECT id, 'long_viz_swap_buffers' FROM _jank_frames WHERE viz_swap_buffers_dur > 6000000
    UNION ALL
    SELECT id, 'long_viz_swap_to_latch' FROM _jank_frames WHERE viz_swap_buffers_to_latch_dur > 17000000
    UNION ALL
    SELECT id, iif(is_inertial, 'inconsistent_fling_input', 'inconsistent_input') FROM _jank_frames WHERE input_gap >= 1.2
    UNION ALL
    SELECT id, 'infrequent_input_cc_scheduling'
    FROM _jank_frames
    WHERE
      input_gap BETWEEN 0.75 AND 1.2
      AND first_input_compositor_dispatch_to_on_begin_frame_delay_dur > 0.66 * vsync_interval_dur
    UNION ALL
    SELECT id, 'infrequent_input_viz_scheduling'
    FROM _jank_frames
    WHERE input_gap BETWEEN 0.75 AND 1.2 AND viz_wait_for_draw_dur > 0.66 * vsync_interval_dur
);

-- Frames that were late, each with what may have held it up.
CREATE PERFETTO TABLE chrome_scroll_jank_tags(
  -- The frame.
  frame_id LONG,
  -- What may have held it up.
  tag STRING
) AS
SELECT frame_id, tag FROM _chrome_scroll_tags!(chrome_scroll_frame_info);

-- The same with one row a frame, also for those of which nothing is known.
CREATE PERFETTO TABLE chrome_tagged_janky_scroll_frames(
  -- The frame.
  frame_id LONG,
  -- Whether anything is known.
  tagged BOOL,
  -- All that may have held it up, with commas.
  tags STRING
) AS
SELECT f.id AS frame_id, max(t.tag) IS NOT NULL AS tagged, group_concat(t.tag ORDER BY t.tag) AS tags
FROM chrome_scroll_frame_info AS f
LEFT JOIN chrome_scroll_jank_tags AS t ON t.frame_id = f.id
WHERE f.is_janky
GROUP BY f.id;

-- Frames that were late, each with what may have held it up.
CREATE PERFETTO TABLE chrome_scroll_jank_tags_v4(
  -- The frame.
  frame_id JOINID(slice.id),
  -- What may have held it up.
  tag STRING
) AS
SELECT frame_id, tag FROM _chrome_scroll_tags!(chrome_scroll_frame_info_v4);

-- The same with one row a frame, also for those of which nothing is known.
CREATE PERFETTO TABLE chrome_tagged_janky_scroll_frames_v4(
  -- The frame.
  frame_id JOINID(slice.id),
  -- Whether anything is known.
  tagged BOOL,
  -- All that may have held it up, with commas.
  tags STRING
) AS
SELECT f.id AS frame_id, max(t.tag) IS NOT NULL AS tagged, group_concat(t.tag ORDER BY t.tag) AS tags
FROM chrome_scroll_frame_info_v4 AS f
LEFT JOIN chrome_scroll_jank_tags_v4 AS t ON t.frame_id = f.id
WHERE f.is_janky
GROUP BY f.id;
