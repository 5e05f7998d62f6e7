-- What is shared by modules about jank.

-- Whether a frame took half a frame longer than its neighbour of the same scroll. The tiny rest keeps exactly half a frame, as
-- it comes out of a division, from counting.
CREATE PERFETTO FUNCTION _is_janky_frame(
  -- The frame's scroll.
  cur_gesture_id LONG,
  -- The neighbour's.
  neighbour_gesture_id LONG,
  -- When the neighbour was made.
  neighbour_ts TIMESTAMP,
  -- When the scroll began.
  cur_gesture_begin_ts TIMESTAMP,
  -- When it ended.
  cur_gesture_end_ts TIMESTAMP,
  -- Length of the frame, in frames of the screen.
  cur_frame_exact DOUBLE,
  -- The neighbour's.
  neighbour_frame_exact DOUBLE
)
RETURNS BOOL AS
SELECT
  iif(
    $cur_gesture_id != $neighbour_gesture_id
    OR $neighbour_ts IS NULL
    OR $neighbour_ts NOT BETWEEN $cur_gesture_begin_ts AND $cur_gesture_end_ts,
    0,
    $cur_frame_exact > $neighbour_frame_exact + 0.5 + 1e-9
  );

-- By how much a frame would have to be shorter not to count, in frames of the screen.
CREATE PERFETTO FUNCTION _jank_budget(
  -- Length of the frame, in frames of the screen.
  cur_frame_exact DOUBLE,
  -- That of the frame before, or NULL.
  prev_frame_exact DOUBLE,
  -- That of the frame behind, or NULL.
  next_frame_exact DOUBLE
)
RETURNS DOUBLE AS
SELECT
  $cur_frame_exact
  - coalesce(min($prev_frame_exact, $next_frame_exact), $prev_frame_exact, $next_frame_exact)
  - 0.5
  - 1e-9;

-- Slices of long tasks of a name, with the call between processes that each of them handled.
CREATE PERFETTO FUNCTION chrome_select_long_task_slices(
  -- Name of the slices.
  name STRING
)
RETURNS TABLE(
  -- Interface that was called.
  interface_name STRING,
  -- Hash of the call.
  ipc_hash LONG,
  -- 'reply' or 'message'.
  message_type STRING,
  -- The slice.
  id LONG
) AS
SELECT
  extract_arg(s.arg_set_id, 'chrome_mojo_event_info.mojo_interface_tag') AS interface_name,
  extract_arg(s.arg_set_id, 'chrome_mojo_event_info.ipc_hash') AS ipc_hash,
  iif(extract_arg(s.arg_set_id, 'chrome_mojo_event_info.is_reply'), 'reply', 'message') AS message_type,
  s.id
FROM slice AS s
WHERE s.name = $name AND s.category GLOB '*scheduler.long_tasks*';
