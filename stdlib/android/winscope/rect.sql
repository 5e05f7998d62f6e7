-- Rectangles that snapshots of the screen refer to.

-- Place and size.
CREATE PERFETTO VIEW android_winscope_rect(
  -- Number of the rectangle.
  id LONG,
  -- Left edge.
  x DOUBLE,
  -- Upper edge.
  y DOUBLE,
  -- Width in pixels.
  w DOUBLE,
  -- Height in pixels.
  h DOUBLE
) AS
SELECT id, x, y, w, h
FROM __intrinsic_winscope_rect;

-- Two-dimensional transformations: the matrix and the shift.
CREATE PERFETTO VIEW android_winscope_transform(
  -- Number of the transform.
  id LONG,
  -- Matrix: from x to x.
  dsdx DOUBLE,
  -- Matrix: from x to y.
  dtdx DOUBLE,
  -- Matrix: shift of x.
  tx DOUBLE,
  -- Matrix: from y to x.
  dtdy DOUBLE,
  -- Matrix: from y to y.
  dsdy DOUBLE,
  -- Matrix: shift of y.
  ty DOUBLE
) AS
SELECT id, dsdx, dtdx, tx, dtdy, dsdy, ty
FROM __intrinsic_winscope_transform;

-- How a rectangle is shown.
CREATE PERFETTO VIEW android_winscope_trace_rect(
  -- Number of the row.
  id LONG,
  -- Its place and size: row of android_winscope_rect.
  rect_id LONG,
  -- Rectangles of one group are drawn together.
  group_id LONG,
  -- Order from back to front.
  depth LONG,
  -- Does it see input meant for others?
  is_spy LONG,
  -- Is it visible?
  is_visible LONG,
  -- 0: transparent, 1: opaque.
  opacity DOUBLE,
  -- How it is moved and turned: row of android_winscope_transform.
  transform_id LONG,
  -- Width of the border.
  border_width LONG,
  -- Colour of the border.
  border_color DOUBLE
) AS
SELECT id, rect_id, group_id, depth, is_spy, is_visible, opacity, transform_id, border_width, border_color
FROM __intrinsic_winscope_trace_rect;
