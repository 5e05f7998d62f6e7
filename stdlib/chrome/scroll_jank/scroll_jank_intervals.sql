-- When scrolls stuttered, and how much.

INCLUDE PERFETTO MODULE chrome.chrome_scrolls;
INCLUDE PERFETTO MODULE chrome.scroll_jank.scroll_jank_v3;

-- Inputs whose frame was late.
CREATE PERFETTO TABLE chrome_janky_event_latencies_v3(
  -- The slice of the input.
  id LONG,
  -- When it began.
  ts TIMESTAMP,
  -- How long it lasted.
  dur DURATION,
  -- Track of the slice.
  track_id LONG,
  -- Name of the slice.
  name STRING,
  -- The part that took longer than in the frame before.
  cause_of_jank STRING,
  -- What in that part did.
  sub_cause_of_jank STRING,
  -- How many frames of the screen it was late.
  delayed_frame_count LONG,
  -- When the frame should have been shown.
  frame_jank_ts TIMESTAMP,
  -- How late it was, in ns.
  frame_jank_dur LONG
) AS
SELECT
  s.id,
  s.ts,
  s.dur,
  s.track_id,
  s.name,
  j.cause_of_jank,
  j.sub_cause_of_jank,
  cast_int!(j.delay_since_last_frame / j.vsync_interval - 1) AS delayed_frame_count,
  cast_int!(s.ts + s.dur - (j.delay_since_last_frame - j.vsync_interval) * 1e6) AS frame_jank_ts,
  cast_int!((j.delay_since_last_frame - j.vsync_interval) * 1e6) AS frame_jank_dur
FROM chrome_janky_frames AS j
JOIN slice AS s ON s.id = j.event_latency_id;

-- From when each should have been shown to when it was.
CREATE PERFETTO VIEW chrome_janky_frame_presentation_intervals(
  -- Number of the row.
  id LONG,
  -- When it began.
  ts TIMESTAMP,
  -- How long it lasted.
  dur DURATION,
  -- How many frames of the screen it was late.
  delayed_frame_count LONG,
  -- The part that took longer than in the frame before.
  cause_of_jank STRING,
  -- What in that part did.
  sub_cause_of_jank STRING,
  -- The slice of the input.
  event_latency_id LONG
) AS
SELECT
  row_number() OVER (ORDER BY frame_jank_ts) AS id,
  frame_jank_ts AS ts,
  frame_jank_dur AS dur,
  delayed_frame_count,
  cause_of_jank,
  sub_cause_of_jank,
  id AS event_latency_id
FROM chrome_janky_event_latencies_v3;

-- By scroll.
CREATE PERFETTO TABLE chrome_scroll_stats(
  -- Its scroll.
  scroll_id LONG,
  -- How many frames there could have been.
  frame_count LONG,
  -- How many frames of the screen were missed; NULL for none.
  missed_vsyncs LONG,
  -- How many frames were shown.
  presented_frame_count LONG,
  -- How many of them were janky.
  janky_frame_count LONG,
  -- Janky frames of them, in percent.
  janky_frame_percent DOUBLE
) AS
WITH
  shown AS (
    SELECT s.id AS scroll_id, count() AS n
    FROM chrome_scrolls AS s
    JOIN chrome_unique_frame_presentation_ts AS f ON f.presentation_timestamp BETWEEN s.ts AND s.ts + s.dur
    GROUP BY s.id
  ),
  missed AS (
    SELECT scroll_id, cast_int!(sum(delay_since_last_frame / vsync_interval - 1)) AS n
    FROM chrome_janky_frames
    GROUP BY scroll_id
  )
SELECT
  s.scroll_id,
  s.n + coalesce(m.n, 0) AS frame_count,
  m.n AS missed_vsyncs,
  f.num_frames AS presented_frame_count,
  coalesce(f.num_janky_frames, 0) AS janky_frame_count,
  round(coalesce(f.scroll_jank_percentage, 0), 2) AS janky_frame_percent
FROM shown AS s
LEFT JOIN missed AS m USING (scroll_id)
LEFT JOIN chrome_frames_per_scroll AS f USING (scroll_id);

-- The delays of late frames that overlap or touch, together.
CREATE PERFETTO TABLE chrome_scroll_jank_intervals_v3(
  -- Number of the row.
  id LONG,
  -- When it began.
  ts TIMESTAMP,
  -- How long it lasted.
  dur DURATION
) AS
WITH
  delays AS (
    SELECT
      frame_jank_ts AS ts,
      frame_jank_ts + frame_jank_dur AS ts_end,
      max(frame_jank_ts + frame_jank_dur) OVER (
        ORDER BY frame_jank_ts, frame_jank_dur ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS end_before
    FROM chrome_janky_event_latencies_v3
  ),
  numbered AS (
    SELECT ts, ts_end, sum(coalesce(ts > end_before + 1, 1)) OVER (ORDER BY ts, ts_end ROWS UNBOUNDED PRECEDING) AS id
    FROM delays
  )
SELECT id, min(ts) AS ts, max(ts_end) - min(ts) AS dur
FROM numbered
GROUP BY id;
