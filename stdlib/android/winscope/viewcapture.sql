-- Trees of the views of windows.

-- Snapshots, one a window.
CREATE PERFETTO VIEW android_viewcapture(
  id ID,
  ts TIMESTAMP,
  arg_set_id ARGSETID,
  package_name STRING,
  window_name STRING
) AS
SELECT id, ts, arg_set_id, package_name, window_name
FROM __intrinsic_viewcapture;

-- Views of a snapshot.
CREATE PERFETTO VIEW android_viewcapture_view(
  id ID,
  snapshot_id JOINID(android_viewcapture.id),
  arg_set_id ARGSETID,
  node_id LONG,
  hashcode LONG,
  is_visible LONG,
  parent_id LONG,
  view_id STRING,
  class_name STRING,
  trace_rect_id JOINID(android_winscope_trace_rect.id)
) AS
SELECT id, snapshot_id, arg_set_id, node_id, hashcode, is_visible, parent_id, view_id, class_name, trace_rect_id
FROM __intrinsic_viewcapture_view;
