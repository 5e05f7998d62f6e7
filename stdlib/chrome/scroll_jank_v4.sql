-- Scrolls that stuttered, as version 4 of Chrome's measure sees it, by its slices "ScrollJankV4".

-- The slices with what their args tell. Times are ns: Chrome writes them so into args whose names end with "_us".
CREATE PERFETTO TABLE _chrome_scroll_jank_v4_slices AS
SELECT
  id,
  name,
  ts,
  dur,
  extract_arg(arg_set_id, 'scroll_jank_v4.result_id') AS result_id,
  extract_arg(arg_set_id, 'scroll_jank_v4.is_janky') AS is_janky,
  extract_arg(arg_set_id, 'scroll_jank_v4.vsyncs_since_previous_frame') AS vsyncs_since_previous_frame,
  extract_arg(arg_set_id, 'scroll_jank_v4.updates.real.first_event_latency_id') AS real_first_event_latency_id,
  extract_arg(arg_set_id, 'scroll_jank_v4.updates.real.abs_total_raw_delta_pixels') AS real_abs_total_raw_delta_pixels,
  extract_arg(arg_set_id, 'scroll_jank_v4.updates.real.total_raw_delta_pixels') AS real_total_raw_delta_pixels,
  extract_arg(arg_set_id, 'scroll_jank_v4.updates.real.max_abs_inertial_raw_delta_pixels') AS real_max_abs_inertial_raw_delta_pixels,
  extract_arg(arg_set_id, 'scroll_jank_v4.updates.synthetic.first_event_latency_id') AS synthetic_first_event_latency_id,
  extract_arg(arg_set_id, 'scroll_jank_v4.updates.first_scroll_update_type') AS first_scroll_update_type,
  extract_arg(arg_set_id, 'scroll_jank_v4.damage_type') AS damage_type,
  extract_arg(arg_set_id, 'scroll_jank_v4.running_delivery_cutoff_us') AS running_delivery_cutoff,
  extract_arg(arg_set_id, 'scroll_jank_v4.adjusted_delivery_cutoff_us') AS adjusted_delivery_cutoff,
  extract_arg(arg_set_id, 'scroll_jank_v4.current_delivery_cutoff_us') AS current_delivery_cutoff,
  extract_arg(arg_set_id, 'scroll_jank_v4.vsync_interval_us') AS vsync_interval
FROM slice
WHERE name = 'ScrollJankV4';

-- Whether releases tell the number of the result: (has_result_id).
CREATE PERFETTO TABLE _chrome_scroll_jank_v4_has_result_id AS
SELECT EXISTS (SELECT 1 FROM _chrome_scroll_jank_v4_slices WHERE result_id IS NOT NULL) AS has_result_id;

-- The first slice of some names for each result: (id, ts, dur), where id is that of the result. It belongs to the result by the
-- number of that, where it is told; in older releases by being below.
CREATE PERFETTO MACRO _chrome_scroll_jank_v4_sub_slice(
  -- Results: id, result_id.
  scroll_jank_v4_slice TableOrSubquery,
  -- Whether the number is told: has_result_id.
  has_result_id TableOrSubquery,
  -- The names, in parentheses.
  sub_slice_names Expr
)
RETURNS TableOrSubquery AS
(
  SELECT id, min(ts) AS ts, dur
  FROM (
    SELECT r.id, s.ts, s.dur
    FROM $scroll_jank_v4_slice AS r
    JOIN args AS a ON a.key = 'scroll_jank_v4.result_id' AND a.int_value = r.result_id
    JOIN slice AS s ON s.arg_set_id = a.arg_set_id AND s.id != r.id
    WHERE (SELECT has_result_id FROM $has_result_id) AND s.name IN $sub_slice_names
    UNION ALL
    SELECT r.id, s.ts, s.dur
    FROM $scroll_jank_v4_slice AS r
    JOIN descendant_slice(r.id) AS s
    WHERE NOT (SELECT has_result_id FROM $has_result_id) AND s.name IN $sub_slice_names
  )
  GROUP BY id
);

-- Frames with scrolls.
CREATE PERFETTO TABLE chrome_scroll_jank_v4_results(
  -- The slice 'ScrollJankV4'.
  id ID(slice.id),
  -- Its name.
  name STRING,
  -- Its start.
  ts TIMESTAMP,
  -- Its length.
  dur DURATION,
  -- Chrome's number of the result.
  result_id LONG,
  -- Whether the frame is janky; chrome_scroll_jank_v4_reasons tells why.
  is_janky BOOL,
  -- How many frames of the screen passed since the frame before; more than one may be missed ones. NULL for the first of a scroll.
  vsyncs_since_previous_frame LONG,
  -- How late an input could come for a frame, going by those before; NULL where none of them tells.
  running_delivery_cutoff DURATION,
  -- The same for this frame; NULL where nothing was missed or none before tells.
  adjusted_delivery_cutoff DURATION,
  -- How late its own input came; NULL for a frame that changed nothing.
  current_delivery_cutoff DURATION,
  -- The first input of a finger in the frame; NULL when there is none.
  real_first_event_latency_id LONG,
  -- When it was made.
  real_first_input_generation_ts TIMESTAMP,
  -- When the last input of a finger in the frame was made.
  real_last_input_generation_ts TIMESTAMP,
  -- How far all of them moved, in pixels, without a sign.
  real_abs_total_raw_delta_pixels DOUBLE,
  -- How far all of them moved, in pixels.
  real_total_raw_delta_pixels DOUBLE,
  -- How far the one of a fling moved that moved furthest, in pixels; NULL without a fling.
  real_max_abs_inertial_raw_delta_pixels DOUBLE,
  -- The first input that Chrome made up for the frame; NULL when there is none.
  synthetic_first_event_latency_id LONG,
  -- When a finger would have made it, going by the inputs before; NULL where none of them tells.
  synthetic_first_extrapolated_input_generation_ts TIMESTAMP,
  -- When the frame that it was made up for began.
  synthetic_first_original_begin_frame_ts TIMESTAMP,
  -- 'REAL', 'SYNTHETIC_WITH_EXTRAPOLATED_INPUT_GENERATION_TIMESTAMP' or 'SYNTHETIC_WITHOUT_…': which of the two is the first.
  first_scroll_update_type STRING,
  -- That one.
  first_event_latency_id LONG,
  -- 'DAMAGING' when the frame changed the screen, 'NON_DAMAGING_WITH_EXTRAPOLATED_PRESENTATION_TIMESTAMP' or 'NON_DAMAGING_WITHOUT_…' when it did not.
  damage_type STRING,
  -- Time between two frames of the screen.
  vsync_interval DURATION,
  -- When the frame began.
  begin_frame_ts TIMESTAMP,
  -- When it was on the screen, or would have been.
  presentation_ts TIMESTAMP
) AS
SELECT
  r.id,
  r.name,
  r.ts,
  r.dur,
  r.result_id,
  r.is_janky,
  r.vsyncs_since_previous_frame,
  r.running_delivery_cutoff,
  r.adjusted_delivery_cutoff,
  r.current_delivery_cutoff,
  r.real_first_event_latency_id,
  g.ts AS real_first_input_generation_ts,
  g.ts + g.dur AS real_last_input_generation_ts,
  r.real_abs_total_raw_delta_pixels,
  r.real_total_raw_delta_pixels,
  r.real_max_abs_inertial_raw_delta_pixels,
  r.synthetic_first_event_latency_id,
  x.ts AS synthetic_first_extrapolated_input_generation_ts,
  o.ts AS synthetic_first_original_begin_frame_ts,
  r.first_scroll_update_type,
  CASE
    WHEN r.first_scroll_update_type GLOB 'SYNTHETIC_*' THEN r.synthetic_first_event_latency_id
    WHEN r.first_scroll_update_type = 'REAL' THEN r.real_first_event_latency_id
    ELSE coalesce(r.real_first_event_latency_id, r.synthetic_first_event_latency_id)
  END AS first_event_latency_id,
  r.damage_type,
  r.vsync_interval,
  b.ts AS begin_frame_ts,
  p.ts AS presentation_ts
FROM _chrome_scroll_jank_v4_slices AS r
LEFT JOIN _chrome_scroll_jank_v4_sub_slice!(
  _chrome_scroll_jank_v4_slices, _chrome_scroll_jank_v4_has_result_id, ('Real scroll update input generation')
) AS g ON g.id = r.id
LEFT JOIN _chrome_scroll_jank_v4_sub_slice!(
  _chrome_scroll_jank_v4_slices, _chrome_scroll_jank_v4_has_result_id, ('Extrapolated first synthetic scroll update input generation')
) AS x ON x.id = r.id
LEFT JOIN _chrome_scroll_jank_v4_sub_slice!(
  _chrome_scroll_jank_v4_slices, _chrome_scroll_jank_v4_has_result_id, ('First synthetic scroll update original begin frame')
) AS o ON o.id = r.id
LEFT JOIN _chrome_scroll_jank_v4_sub_slice!(
  _chrome_scroll_jank_v4_slices, _chrome_scroll_jank_v4_has_result_id, ('Begin frame')
) AS b ON b.id = r.id
LEFT JOIN _chrome_scroll_jank_v4_sub_slice!(
  _chrome_scroll_jank_v4_slices, _chrome_scroll_jank_v4_has_result_id, ('Presentation', 'Extrapolated presentation')
) AS p ON p.id = r.id
ORDER BY r.ts;

-- Why frames are janky; one may have several reasons.
CREATE PERFETTO TABLE chrome_scroll_jank_v4_reasons(
  -- The slice 'ScrollJankV4'.
  id JOINID(slice.id),
  -- 'MISSED_VSYNC_DUE_TO_DECELERATING_INPUT_FRAME_DELIVERY' (frames came later and later), 'MISSED_VSYNC_DURING_FAST_SCROLL',
  -- 'MISSED_VSYNC_AT_START_OF_FLING' or 'MISSED_VSYNC_DURING_FLING'.
  jank_reason STRING,
  -- How many frames of the screen were missed for it.
  missed_vsyncs LONG
) AS
WITH
  reasons AS (
    SELECT DISTINCT s.id, s.arg_set_id, substr(a.key, 1, instr(a.key, ']')) AS prefix
    FROM slice AS s
    JOIN args AS a USING (arg_set_id)
    WHERE s.name = 'ScrollJankV4' AND a.flat_key GLOB 'scroll_jank_v4.missed_vsyncs_per_jank_reason.*'
  )
SELECT
  id,
  extract_arg(arg_set_id, prefix || '.jank_reason') AS jank_reason,
  extract_arg(arg_set_id, prefix || '.missed_vsyncs') AS missed_vsyncs
FROM reasons
ORDER BY id;
