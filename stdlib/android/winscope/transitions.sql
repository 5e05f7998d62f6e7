-- Who takes part in a transition of windows.

-- Layers and windows of a transition.
CREATE PERFETTO VIEW android_window_manager_shell_transition_participants(
  -- Number of the transition.
  transition_id LONG,
  -- Number of the layer.
  layer_id LONG,
  -- Number of the window.
  window_id LONG,
  -- What becomes of it: opened, closed, to front, to back, changed.
  mode LONG,
  -- Bits of the change.
  flags LONG,
  -- Display at the start.
  start_display_id LONG,
  -- Display at the end.
  end_display_id LONG,
  -- Rotation at the start.
  start_rotation LONG,
  -- Rotation at the end.
  end_rotation LONG,
  -- Place at the start: row of android_winscope_rect.
  start_abs_bounds_rect_id LONG,
  -- Place at the end: row of android_winscope_rect.
  end_abs_bounds_rect_id LONG
) AS
SELECT transition_id, layer_id, window_id, mode, flags, start_display_id, end_display_id, start_rotation, end_rotation, start_abs_bounds_rect_id, end_abs_bounds_rect_id
FROM __intrinsic_window_manager_shell_transition_participants;

-- The messages that told of it.
CREATE PERFETTO VIEW android_window_manager_shell_transition_protos(
  -- Number of the transition.
  transition_id LONG,
  -- The message itself: number of a string in base64.
  base64_proto_id LONG
) AS
SELECT transition_id, base64_proto_id
FROM __intrinsic_window_manager_shell_transition_protos;
