-- How often the screen asks Chrome for a frame.

-- Each VSync with the time to the next.
CREATE PERFETTO TABLE chrome_vsync_intervals(
  slice_id LONG,
  ts TIMESTAMP,
  dur DURATION,
  track_id LONG,
  time_to_next_vsync LONG
) AS
SELECT id AS slice_id, ts, dur, track_id, lead(ts) OVER (PARTITION BY track_id ORDER BY ts) - ts AS time_to_next_vsync
FROM slice
WHERE name = 'VSync'
ORDER BY track_id, ts;

-- The average of those within a span, such as a gesture.
CREATE PERFETTO FUNCTION chrome_calculate_avg_vsync_interval(
  begin_ts TIMESTAMP,
  end_ts TIMESTAMP
)
RETURNS DOUBLE AS
SELECT avg(time_to_next_vsync)
FROM chrome_vsync_intervals
WHERE time_to_next_vsync IS NOT NULL AND ts > $begin_ts AND ts < $end_ts;
