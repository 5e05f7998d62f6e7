-- Steps on the way of an input through Chrome, by its slices "LatencyInfo.Flow".

INCLUDE PERFETTO MODULE chrome.android_input;
INCLUDE PERFETTO MODULE slices.with_context;

CREATE PERFETTO TABLE _chrome_input_steps AS
SELECT
  id,
  ts,
  dur,
  utid,
  arg_set_id,
  extract_arg(arg_set_id, 'chrome_latency_info.trace_id') AS latency_id,
  extract_arg(arg_set_id, 'chrome_latency_info.step') AS step,
  extract_arg(arg_set_id, 'chrome_latency_info.input_type') AS input_type,
  (SELECT a.ts FROM ancestor_slice(thread_slice.id) AS a WHERE a.name = 'ThreadControllerImpl::RunTask' LIMIT 1)
    AS task_start_time_ts
FROM thread_slice
WHERE name = 'LatencyInfo.Flow' AND extract_arg(arg_set_id, 'chrome_latency_info.step') IS NOT NULL;

-- The inputs. Not each step tells the kind.
CREATE PERFETTO TABLE chrome_inputs(
  -- Number that Chrome follows the input by.
  latency_id LONG,
  -- Kind of input.
  input_type STRING
) AS
SELECT latency_id, max(input_type) AS input_type
FROM _chrome_input_steps
WHERE latency_id != -1
GROUP BY latency_id;

-- Steps as they are told: input_type only where the step itself tells it.
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
SELECT latency_id, id AS slice_id, ts, dur, utid, step, input_type, task_start_time_ts
FROM _chrome_input_steps
WHERE latency_id != -1
ORDER BY ts;

-- Their steps.
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
FROM _chrome_input_pipeline_steps_no_input_type AS s
JOIN chrome_inputs AS i USING (latency_id)
ORDER BY s.ts;

-- Inputs that were put together with another one, which is shown in their stead (or with themselves).
CREATE PERFETTO TABLE chrome_coalesced_inputs(
  -- Input that became part of another.
  coalesced_latency_id LONG,
  -- That other, which was presented.
  presented_latency_id LONG
) AS
SELECT a.int_value AS coalesced_latency_id, s.latency_id AS presented_latency_id
FROM _chrome_input_steps AS s
JOIN args AS a USING (arg_set_id)
WHERE s.step = 'STEP_RESAMPLE_SCROLL_EVENTS' AND a.flat_key = 'chrome_latency_info.coalesced_trace_ids'
GROUP BY a.int_value;

-- The inputs of two steps one of which stands inside the other.
CREATE PERFETTO MACRO _chrome_input_inside(
  inner_step Expr,
  outer_step Expr
)
RETURNS TableOrSubquery AS
(
  SELECT i.latency_id AS inner_id, o.latency_id AS outer_id
  FROM _chrome_input_steps AS i
  JOIN ancestor_slice(i.id) AS a
  JOIN _chrome_input_steps AS o ON o.id = a.id
  WHERE i.step = $inner_step AND o.step = $outer_step AND o.latency_id != i.latency_id
);

-- The movement of a finger that a scroll came from: the scroll is made while the touch is handled.
CREATE PERFETTO TABLE chrome_touch_move_to_scroll_update(
  -- Input of the touch that moved.
  touch_move_latency_id LONG,
  -- Input of the scrolling that came of it.
  scroll_update_latency_id LONG
) AS
SELECT p.outer_id AS touch_move_latency_id, p.inner_id AS scroll_update_latency_id
FROM _chrome_input_inside!('STEP_SEND_INPUT_EVENT_UI', 'STEP_TOUCH_EVENT_HANDLED') AS p
JOIN chrome_inputs AS i ON i.latency_id = p.inner_id
WHERE i.input_type = 'GESTURE_SCROLL_UPDATE_EVENT'
GROUP BY p.inner_id;

-- Android's number of the event that a touch came from: the browser sends the touch on while Android delivers the event.
CREATE PERFETTO TABLE chrome_dispatch_android_input_event_to_touch_move(
  -- Android's number of the input event.
  android_input_id STRING,
  -- Input of the touch that moved.
  touch_move_latency_id LONG
) AS
SELECT d.android_input_id, s.latency_id AS touch_move_latency_id
FROM _chrome_input_steps AS s
JOIN ancestor_slice(s.id) AS a
JOIN chrome_deliver_android_input_event AS d ON d.utid = s.utid AND d.ts = a.ts AND d.dur = a.dur
JOIN chrome_inputs AS i USING (latency_id)
WHERE s.step = 'STEP_SEND_INPUT_EVENT_UI' AND i.input_type = 'TOUCH_MOVE_EVENT'
GROUP BY s.latency_id;
