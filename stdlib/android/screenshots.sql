-- Screenshots in the trace.

-- One row a picture.
CREATE PERFETTO TABLE android_screenshots(
  id ID(slice.id),
  ts TIMESTAMP,
  dur DURATION,
  name STRING
) AS
SELECT id, ts, dur, name FROM slice WHERE track_id IN (SELECT id FROM track WHERE type = 'android_screenshots');
