-- How often the screen asks Chrome for a frame.

-- Each VSync with the time to the next.
CREATE PERFETTO TABLE chrome_vsync_intervals(
  -- Row of slice.
  slice_id LONG,
  -- When the interval began.
  ts TIMESTAMP,
  -- Duration of the interval in nanoseconds.
  dur DURATION,
  -- Row of track.
  track_id LONG,
  -- Time until the next one begins.
  time_to_next_vsync LONG
) AS
SELECT id AS slice_id, ts, dur, track_id, lead(ts) OVER (PARTITION BY track_id ORDER BY ts) - ts AS time_to_next_vsync
FROM slice
WHERE name = 'VSync'
ORDER BY track_id, ts;

-- The average of those within a span, such as a gesture.
CREATE PERFETTO FUNCTION chrome_calculate_avg_vsync_interval(
  -- From this time.
  begin_ts TIMESTAMP,
  -- Up to this time.
  end_ts TIMESTAMP
)
-- Nanoseconds; those of 60 Hz when there are none.
RETURNS DOUBLE AS
SELECT coalesce(avg(CAST(time_to_next_vsync AS REAL)), 1e9 / 60)
FROM chrome_vsync_intervals
WHERE time_to_next_vsync IS NOT NULL AND ts > $begin_ts AND ts < $end_ts;
