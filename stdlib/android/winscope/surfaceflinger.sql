-- What the compositor was told, and on which displays it drew.

-- Changes asked for.
CREATE PERFETTO VIEW android_surfaceflinger_transaction(
  -- Number of the row.
  id LONG,
  -- The snapshot it belongs to.
  snapshot_id LONG,
  -- Details: the set of args.
  arg_set_id LONG,
  -- Number of the transaction.
  transaction_id LONG,
  -- The kernel's number of the process that sent it.
  pid LONG,
  -- The user id that sent it.
  uid LONG,
  -- Number of the layer.
  layer_id LONG,
  -- Number of the display.
  display_id LONG,
  -- What it changes: flags_id of android_surfaceflinger_transaction_flag.
  flags_id LONG,
  -- What kind of change.
  transaction_type STRING
) AS
SELECT id, snapshot_id, arg_set_id, transaction_id, pid, uid, layer_id, display_id, flags_id, transaction_type
FROM __intrinsic_surfaceflinger_transaction;

-- What each change touches, by name.
CREATE PERFETTO VIEW android_surfaceflinger_transaction_flag(
  -- Number of the set of flags.
  flags_id LONG,
  -- Name of one thing that is changed.
  flag STRING
) AS
SELECT flags_id, flag
FROM __intrinsic_surfaceflinger_transaction_flag;

-- Displays of a snapshot of the layers.
CREATE PERFETTO VIEW android_surfaceflinger_display(
  -- Number of the row.
  id LONG,
  -- The snapshot it belongs to.
  snapshot_id LONG,
  -- Is it switched on?
  is_on LONG,
  -- Is it a virtual one?
  is_virtual LONG,
  -- Its rectangle: row of android_winscope_trace_rect.
  trace_rect_id LONG,
  -- Number of the display.
  display_id LONG,
  -- Name of the display.
  display_name STRING
) AS
SELECT id, snapshot_id, is_on, is_virtual, trace_rect_id, display_id, display_name
FROM __intrinsic_surfaceflinger_display;

-- Parts that fill a rectangle.
CREATE PERFETTO VIEW android_winscope_fill_region(
  -- Number of the row.
  id LONG,
  -- Its rectangle: row of android_winscope_trace_rect.
  trace_rect_id LONG,
  -- Its place and size: row of android_winscope_rect.
  rect_id LONG
) AS
SELECT id, trace_rect_id, rect_id
FROM __intrinsic_winscope_fill_region;
