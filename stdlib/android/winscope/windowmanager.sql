-- Trees of windows.

-- Snapshots of all of them.
CREATE PERFETTO VIEW android_windowmanager(
  -- Number of the snapshot.
  id LONG,
  -- When it was taken.
  ts TIMESTAMP,
  -- Details: the set of args.
  arg_set_id ARGSETID,
  -- The message itself: number of a string in base64.
  base64_proto_id LONG,
  -- The display with the focus.
  focused_display_id LONG,
  -- Did the time not come from the clock of all other snapshots?
  has_invalid_elapsed_ts BOOL
) AS
SELECT id, ts, arg_set_id, base64_proto_id, focused_display_id, has_invalid_elapsed_ts
FROM __intrinsic_windowmanager;

-- What a snapshot holds: displays, areas, tasks, windows.
CREATE PERFETTO VIEW android_windowmanager_windowcontainer(
  -- Number of the row.
  id LONG,
  -- The snapshot it belongs to.
  snapshot_id LONG,
  -- Details: the set of args.
  arg_set_id ARGSETID,
  -- The message itself: number of a string in base64.
  base64_proto_id LONG,
  -- Title of the container.
  title STRING,
  -- Token of the container: what it is known by.
  token LONG,
  -- Token of the container it lies in.
  parent_token LONG,
  -- Its place among the children of the one it lies in.
  child_index LONG,
  -- Is it visible?
  is_visible BOOL,
  -- Place of the window: row of android_winscope_rect.
  window_rect_id LONG,
  -- Kind of container.
  container_type STRING,
  -- Name to show instead of the title; NULL: none.
  name_override STRING
) AS
SELECT id, snapshot_id, arg_set_id, base64_proto_id, title, token, parent_token, child_index, is_visible, window_rect_id, container_type, name_override
FROM __intrinsic_windowmanager_windowcontainer;
