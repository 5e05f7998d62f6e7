-- Screenshots in the trace.

-- One row a picture.
CREATE PERFETTO TABLE android_screenshots(
  -- Row of slice.
  id ID(slice.id),
  -- When the screenshot began.
  ts TIMESTAMP,
  -- Duration of the screenshot in nanoseconds.
  dur DURATION,
  -- Name of the slice.
  name STRING
) AS
SELECT id, ts, dur, name
FROM slice
WHERE
  name = 'Screenshot'
  AND category = 'android_screenshot'
  AND extract_arg(arg_set_id, 'screenshot.jpg_image') IS NOT NULL;
