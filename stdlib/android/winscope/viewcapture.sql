-- Trees of the views of windows.

-- Snapshots, one a window.
CREATE PERFETTO VIEW android_viewcapture(
  -- Number of the snapshot.
  id LONG,
  -- When it was taken.
  ts TIMESTAMP,
  -- Details: the set of args.
  arg_set_id ARGSETID,
  -- The application's package.
  package_name STRING,
  -- Name of the window.
  window_name STRING
) AS
SELECT id, ts, arg_set_id, package_name, window_name
FROM __intrinsic_viewcapture;

-- Views of a snapshot.
CREATE PERFETTO VIEW android_viewcapture_view(
  -- Number of the row.
  id LONG,
  -- The snapshot it belongs to.
  snapshot_id LONG,
  -- Details: the set of args.
  arg_set_id ARGSETID,
  -- Number of the view in its snapshot.
  node_id LONG,
  -- Hash of the view's object: the same from snapshot to snapshot.
  hashcode LONG,
  -- Is it visible?
  is_visible LONG,
  -- Number of the view it lies in.
  parent_id LONG,
  -- Name of the view's resource.
  view_id STRING,
  -- Class of the view.
  class_name STRING,
  -- Its rectangle: row of android_winscope_trace_rect.
  trace_rect_id LONG
) AS
SELECT id, snapshot_id, arg_set_id, node_id, hashcode, is_visible, parent_id, view_id, class_name, trace_rect_id
FROM __intrinsic_viewcapture_view;
