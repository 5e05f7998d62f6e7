-- Steps on the way of a frame through Chrome, by its slices "Graphics.Pipeline".

INCLUDE PERFETTO MODULE slices.with_context;

-- All steps. task_start_time_ts: when the task around a step began, where the step tells how long ago that was.
CREATE PERFETTO TABLE _chrome_graphics_steps AS
SELECT
  id,
  ts,
  dur,
  extract_arg(arg_set_id, 'chrome_graphics_pipeline.step') AS step,
  extract_arg(arg_set_id, 'chrome_graphics_pipeline.surface_frame_trace_id') AS surface_frame_trace_id,
  extract_arg(arg_set_id, 'chrome_graphics_pipeline.display_trace_id') AS display_trace_id,
  utid,
  arg_set_id,
  ts - extract_arg(arg_set_id, 'current_task.event_offset_from_task_start_time_us') * 1000 AS task_start_time_ts
FROM thread_slice
WHERE name = 'Graphics.Pipeline';

-- Those of a client that makes its part of a frame; some clients tell no number (-1).
CREATE PERFETTO TABLE chrome_graphics_pipeline_surface_frame_steps(
  -- Row of slice.
  id LONG,
  -- When the step began.
  ts TIMESTAMP,
  -- Duration of the step in nanoseconds.
  dur DURATION,
  -- The step of the pipeline.
  step STRING,
  -- Number of a frame of one surface, before it is put together with others.
  surface_frame_trace_id LONG,
  -- Row of thread.
  utid LONG,
  -- Start of the task that the step is part of.
  task_start_time_ts TIMESTAMP
) AS
SELECT id, ts, dur, step, nullif(surface_frame_trace_id, -1) AS surface_frame_trace_id, utid, task_start_time_ts
FROM _chrome_graphics_steps
WHERE surface_frame_trace_id IS NOT NULL;

-- Those of the whole frame, put together and shown; one that a thread took several times for a frame is here with the last time.
CREATE PERFETTO TABLE chrome_graphics_pipeline_display_frame_steps(
  -- Row of slice.
  id LONG,
  -- When the step began.
  ts TIMESTAMP,
  -- Duration of the step in nanoseconds.
  dur DURATION,
  -- The step of the pipeline.
  step STRING,
  -- Number of the frame that the display shows.
  display_trace_id LONG,
  -- Row of thread.
  utid LONG,
  -- Start of the task that the step is part of.
  task_start_time_ts TIMESTAMP
) AS
SELECT id, ts, dur, step, display_trace_id, utid, task_start_time_ts
FROM (
  SELECT *, row_number() OVER (PARTITION BY display_trace_id, step, utid ORDER BY ts DESC) AS place
  FROM _chrome_graphics_steps
  WHERE display_trace_id IS NOT NULL
)
WHERE place = 1;

-- The first frame that shows a client's part.
CREATE PERFETTO TABLE chrome_surface_frame_id_to_first_display_id(
  -- Number of a frame of one surface, before it is put together with others.
  surface_frame_trace_id LONG,
  -- Number of the frame that the display shows.
  display_trace_id LONG
) AS
SELECT surface_frame_trace_id, display_trace_id
FROM (
  SELECT
    a.int_value AS surface_frame_trace_id,
    d.display_trace_id,
    row_number() OVER (PARTITION BY a.int_value ORDER BY d.ts) AS place
  FROM chrome_graphics_pipeline_display_frame_steps AS d
  JOIN slice AS s USING (id)
  JOIN args AS a USING (arg_set_id)
  WHERE d.step = 'STEP_SURFACE_AGGREGATION' AND a.flat_key = 'chrome_graphics_pipeline.aggregated_surface_frame_trace_ids'
)
WHERE place = 1;

-- The part of a frame that an input went into.
CREATE PERFETTO TABLE chrome_graphics_pipeline_inputs_to_surface_frames(
  -- Number that Chrome follows the input by.
  latency_id LONG,
  -- Number of a frame of one surface, before it is put together with others.
  surface_frame_trace_id LONG
) AS
SELECT a.int_value AS latency_id, f.surface_frame_trace_id
FROM chrome_graphics_pipeline_surface_frame_steps AS f
JOIN slice AS s USING (id)
JOIN args AS a USING (arg_set_id)
WHERE f.step = 'STEP_SUBMIT_COMPOSITOR_FRAME' AND a.flat_key = 'chrome_graphics_pipeline.latency_ids';
