-- Steps on the way of an input through Chrome, by slices whose args tell of one ("LatencyInfo.Flow").

INCLUDE PERFETTO MODULE chrome.android_input;
INCLUDE PERFETTO MODULE slices.with_context;

-- Steps as they are told: input_type only where the step itself tells it. One that a thread took several times for an input is here with the
-- last time.
CREATE PERFETTO TABLE _chrome_input_pipeline_steps_no_input_type(
  -- Chrome's number of the input.
  latency_id LONG,
  -- Row of slice.
  slice_id LONG,
  -- When it began.
  ts TIMESTAMP,
  -- How long it took.
  dur DURATION,
  -- The thread.
  utid LONG,
  -- The step.
  step STRING,
  -- The kind of input; NULL: the step does not tell.
  input_type STRING,
  -- When the task around it began.
  task_start_time_ts TIMESTAMP
) AS
WITH
  told AS (
    SELECT
      extract_arg(arg_set_id, 'chrome_latency_info.trace_id') AS latency_id,
      id AS slice_id,
      ts,
      dur,
      utid,
      extract_arg(arg_set_id, 'chrome_latency_info.step') AS step,
      extract_arg(arg_set_id, 'chrome_latency_info.input_type') AS input_type,
      ts - extract_arg(arg_set_id, 'current_task.event_offset_from_task_start_time_us') * 1000 AS task_start_time_ts
    FROM thread_slice
  ),
  numbered AS (
    SELECT *, row_number() OVER (PARTITION BY latency_id, utid, step, input_type ORDER BY ts DESC) AS place
    FROM told
    WHERE step IS NOT NULL AND latency_id != -1
  )
SELECT latency_id, slice_id, ts, dur, utid, step, input_type, task_start_time_ts
FROM numbered
WHERE place = 1
ORDER BY slice_id, ts;

-- The inputs. Not each step tells the kind.
CREATE PERFETTO TABLE chrome_inputs(
  -- Number that Chrome follows the input by.
  latency_id LONG,
  -- Kind of input.
  input_type STRING
) AS
SELECT latency_id, min(input_type) AS input_type
FROM _chrome_input_pipeline_steps_no_input_type
GROUP BY latency_id;

-- Their steps, where any tells the kind of the input.
CREATE PERFETTO TABLE chrome_input_pipeline_steps(
  -- Number that Chrome follows the input by.
  latency_id LONG,
  -- Row of slice.
  slice_id LONG,
  -- When the step began.
  ts TIMESTAMP,
  -- Duration of the step in nanoseconds.
  dur DURATION,
  -- Row of thread.
  utid LONG,
  -- The step of the pipeline.
  step STRING,
  -- Kind of input.
  input_type STRING,
  -- Start of the task that the step is part of.
  task_start_time_ts TIMESTAMP
) AS
SELECT s.latency_id, s.slice_id, s.ts, s.dur, s.utid, s.step, i.input_type, s.task_start_time_ts
FROM chrome_inputs AS i
JOIN _chrome_input_pipeline_steps_no_input_type AS s USING (latency_id)
WHERE i.input_type IS NOT NULL;

-- Inputs that were put together with another one, which is shown in their stead.
CREATE PERFETTO TABLE chrome_coalesced_inputs(
  -- Input that became part of another.
  coalesced_latency_id LONG,
  -- That other, which was presented.
  presented_latency_id LONG
) AS
SELECT a.int_value AS coalesced_latency_id, p.latency_id AS presented_latency_id
FROM chrome_input_pipeline_steps AS p
JOIN slice AS s ON s.id = p.slice_id
JOIN args AS a USING (arg_set_id)
WHERE
  p.step = 'STEP_RESAMPLE_SCROLL_EVENTS'
  AND a.flat_key = 'chrome_latency_info.coalesced_trace_ids'
  AND a.int_value != p.latency_id;

-- Steps that make a scroll, each with the step of a touch that they lie in, on the same thread: (touch_move_latency_id,
-- scroll_update_latency_id).
CREATE PERFETTO MACRO _chrome_scroll_made_in(
  -- The steps of touches.
  touch_steps TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT t.latency_id AS touch_move_latency_id, u.latency_id AS scroll_update_latency_id
  FROM chrome_input_pipeline_steps AS u
  JOIN $touch_steps AS t ON t.utid = u.utid AND t.ts <= u.ts AND t.ts + t.dur >= u.ts + u.dur
  WHERE
    u.step = 'STEP_SEND_INPUT_EVENT_UI' AND u.input_type = 'GESTURE_SCROLL_UPDATE_EVENT' AND u.dur > 0 AND t.dur > 0
);

-- The movement of a finger that a scroll came from: the scroll is made while the touch is handled or, where no page listens for touches,
-- while it is sent.
CREATE PERFETTO TABLE chrome_touch_move_to_scroll_update(
  -- Input of the touch that moved.
  touch_move_latency_id LONG,
  -- Input of the scrolling that came of it.
  scroll_update_latency_id LONG
) AS
WITH
  handled AS MATERIALIZED (
    SELECT *
    FROM _chrome_scroll_made_in!((SELECT * FROM chrome_input_pipeline_steps WHERE step = 'STEP_TOUCH_EVENT_HANDLED'))
  ),
  sent AS MATERIALIZED (
    SELECT *
    FROM _chrome_scroll_made_in!((
      SELECT * FROM chrome_input_pipeline_steps WHERE step = 'STEP_SEND_INPUT_EVENT_UI' AND input_type = 'TOUCH_MOVE_EVENT'
    ))
  )
SELECT coalesce(h.touch_move_latency_id, s.touch_move_latency_id) AS touch_move_latency_id, scroll_update_latency_id
FROM (SELECT scroll_update_latency_id FROM handled UNION SELECT scroll_update_latency_id FROM sent)
LEFT JOIN handled AS h USING (scroll_update_latency_id)
LEFT JOIN sent AS s USING (scroll_update_latency_id);

-- Android's number of the event that a touch came from: the browser sends the touch on while Android delivers the event.
CREATE PERFETTO TABLE chrome_dispatch_android_input_event_to_touch_move(
  -- Android's number of the input event.
  android_input_id STRING,
  -- Input of the touch that moved.
  touch_move_latency_id LONG
) AS
SELECT d.android_input_id, s.latency_id AS touch_move_latency_id
FROM chrome_deliver_android_input_event AS d
JOIN chrome_input_pipeline_steps AS s USING (utid)
WHERE
  s.input_type = 'TOUCH_MOVE_EVENT'
  AND s.step = 'STEP_SEND_INPUT_EVENT_UI'
  AND d.ts <= s.ts
  AND d.ts + d.dur >= s.ts + s.dur;
