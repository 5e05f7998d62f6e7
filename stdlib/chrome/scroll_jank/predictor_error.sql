-- Frames of scrolls that moved too far or too little against those around them, because Chrome guessed wrong where the finger
-- would be.

INCLUDE PERFETTO MODULE chrome.scroll_jank.scroll_offsets;

-- The largest movement, in pixels, of three frames that counts as slow.
CREATE PERFETTO FUNCTION _get_slow_scroll_delta_threshold()
RETURNS DOUBLE AS
SELECT 7.0;

-- How much a frame of a slow scroll may differ from its neighbours, as a ratio.
CREATE PERFETTO FUNCTION _get_slow_scroll_janky_threshold()
RETURNS DOUBLE AS
SELECT 1.4;

-- The same for fast ones.
CREATE PERFETTO FUNCTION _get_fast_scroll_janky_threshold()
RETURNS DOUBLE AS
SELECT 1.2;

-- By how much a frame may differ from the ones around it: movements of up to 7 pixels by 1.4 times, faster ones by 1.2 times.
CREATE PERFETTO FUNCTION _get_scroll_jank_threshold(
  -- Movement of the frame before.
  d1 DOUBLE,
  -- Of the frame.
  d2 DOUBLE,
  -- Of the frame behind.
  d3 DOUBLE
)
RETURNS DOUBLE AS
SELECT
  iif(
    max($d1, $d2, $d3) <= _get_slow_scroll_delta_threshold(),
    _get_slow_scroll_janky_threshold(),
    _get_fast_scroll_janky_threshold()
  );

-- By how much a frame differs beyond that: from the larger of its neighbours, or from the smaller.
CREATE PERFETTO FUNCTION _get_predictor_jank(
  -- Movement of the frame before.
  d1 DOUBLE,
  -- Of the frame.
  d2 DOUBLE,
  -- Of the frame behind.
  d3 DOUBLE,
  -- How much it may.
  threshold DOUBLE
)
RETURNS DOUBLE AS
SELECT
  CASE
    WHEN $d2 / max($d1, $d3) >= $threshold THEN $d2 / max($d1, $d3) - $threshold
    WHEN min($d1, $d3) / $d2 >= $threshold THEN min($d1, $d3) / $d2 - $threshold
    ELSE 0.0
  END;

-- Frames with the movement of the ones before and behind, but for the first and the last of each scroll.
CREATE PERFETTO TABLE _deltas_and_neighbors AS
SELECT *
FROM (
  SELECT
    scroll_id,
    scroll_update_id,
    ts,
    delta_y,
    relative_offset_y,
    lag(coalesce(delta_y, 0.0)) OVER by_time AS prev_delta,
    lead(coalesce(delta_y, 0.0)) OVER by_time AS next_delta
  FROM chrome_presented_scroll_offsets
  WINDOW by_time AS (PARTITION BY scroll_id ORDER BY ts)
)
WHERE delta_y IS NOT NULL AND prev_delta IS NOT NULL AND next_delta IS NOT NULL;

-- The same, and how much each may differ.
CREATE PERFETTO TABLE _deltas_and_neighbors_with_threshold AS
SELECT *, _get_scroll_jank_threshold(abs(prev_delta), abs(delta_y), abs(next_delta)) AS delta_threshold
FROM _deltas_and_neighbors;

-- All frames but the first and the last of each scroll.
CREATE PERFETTO TABLE chrome_predictor_error(
  -- Its scroll.
  scroll_id LONG,
  -- Chrome's number of the input.
  scroll_update_id LONG,
  -- When the frame was on the screen.
  present_ts TIMESTAMP,
  -- Movement up or down, in pixels.
  delta_y DOUBLE,
  -- All movement of the scroll so far.
  relative_offset_y DOUBLE,
  -- Movement of the frame before.
  prev_delta DOUBLE,
  -- Movement of the frame behind.
  next_delta DOUBLE,
  -- By how much the movement is off, beyond what it may be.
  predictor_jank DOUBLE,
  -- How much it may be off, as a ratio.
  delta_threshold DOUBLE
) AS
SELECT
  scroll_id,
  scroll_update_id,
  ts AS present_ts,
  delta_y,
  relative_offset_y,
  prev_delta,
  next_delta,
  _get_predictor_jank(abs(prev_delta), abs(delta_y), abs(next_delta), delta_threshold) AS predictor_jank,
  delta_threshold
FROM _deltas_and_neighbors_with_threshold;
