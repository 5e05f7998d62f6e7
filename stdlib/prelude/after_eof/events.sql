-- Ftrace events, and frames and GPU work as slices.

-- Every event of the kernel, with all of its fields in args.
CREATE PERFETTO VIEW ftrace_event(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- Name of the event, for instance sched_switch.
  name STRING,
  -- Number of the CPU; the same as ucpu, so that it is unique over all machines.
  cpu LONG,
  -- The thread that was running.
  utid JOINID(thread.id),
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id ARGSETID,
  -- Flags of the kernel: interrupts off, in an interrupt, needs rescheduling.
  common_flags LONG,
  -- Row of cpu: a CPU of one machine.
  ucpu LONG
)
AS
SELECT id, ts, name, ucpu AS cpu, utid, arg_set_id, common_flags, ucpu
FROM __intrinsic_ftrace_event;

-- The same as ftrace_event, under its old name.
CREATE PERFETTO VIEW raw(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- Name of the event, for instance sched_switch.
  name STRING,
  -- Number of the CPU; the same as ucpu, so that it is unique over all machines.
  cpu LONG,
  -- The thread that was running.
  utid JOINID(thread.id),
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id ARGSETID,
  -- Flags of the kernel: interrupts off, in an interrupt, needs rescheduling.
  common_flags LONG,
  -- Row of cpu: a CPU of one machine.
  ucpu LONG
)
AS
SELECT id, ts, name, ucpu AS cpu, utid, arg_set_id, common_flags, ucpu
FROM __intrinsic_ftrace_event;

-- Ways of graphics buffers from drawing to the display, as slices.
CREATE PERFETTO VIEW frame_slice(
  -- Row of slice.
  id ID(slice.id),
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- How long, in nanoseconds; -1 when the end was not recorded.
  dur DURATION,
  -- The track it is drawn on.
  track_id JOINID(track.id),
  -- Its categories, separated by commas.
  category STRING,
  -- Its name.
  name STRING,
  -- How many slices of the track it lies in; 0 is outermost.
  depth LONG,
  -- The one it belongs to; NULL: none.
  parent_id JOINID(frame_slice.id),
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id LONG,
  -- Name of the layer.
  layer_name STRING,
  -- Number of the frame within its layer.
  frame_number LONG,
  -- From queueing the buffer to the end of drawing, in nanoseconds.
  queue_to_acquire_time LONG,
  -- From there until the compositor took it, in nanoseconds.
  acquire_to_latch_time LONG,
  -- From there until it was shown, in nanoseconds.
  latch_to_present_time LONG
)
AS
SELECT s.id, s.ts, s.dur, s.track_id, s.category, s.name, s.depth, s.parent_id, s.arg_set_id,
  extract_arg(s.arg_set_id, 'layer_name') AS layer_name,
  extract_arg(s.arg_set_id, 'frame_number') AS frame_number,
  extract_arg(s.arg_set_id, 'queue_to_acquire_time') AS queue_to_acquire_time,
  extract_arg(s.arg_set_id, 'acquire_to_latch_time') AS acquire_to_latch_time,
  extract_arg(s.arg_set_id, 'latch_to_present_time') AS latch_to_present_time
FROM __intrinsic_slice AS s
JOIN __intrinsic_track AS t ON t.id = s.track_id
WHERE t.type = 'graphics_frame_event';

-- Work of GPUs, as slices.
CREATE PERFETTO VIEW gpu_slice(
  -- Row of slice.
  id ID(slice.id),
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- How long, in nanoseconds; -1 when the end was not recorded.
  dur DURATION,
  -- The track it is drawn on.
  track_id JOINID(track.id),
  -- Its categories, separated by commas.
  category STRING,
  -- Its name.
  name STRING,
  -- How many slices of the track it lies in; 0 is outermost.
  depth LONG,
  -- The one it belongs to; NULL: none.
  parent_id JOINID(frame_slice.id),
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id LONG,
  -- Number of the GPU context.
  context_id LONG,
  -- Handle of what was drawn to.
  render_target LONG,
  -- Its name.
  render_target_name STRING,
  -- Handle of the render pass.
  render_pass LONG,
  -- Its name.
  render_pass_name STRING,
  -- Handle of the command buffer.
  command_buffer LONG,
  -- Its name.
  command_buffer_name STRING,
  -- Number of the frame.
  frame_id LONG,
  -- Number of the submission to the queue.
  submission_id LONG,
  -- Number of the hardware queue.
  hw_queue_id LONG,
  -- The process.
  upid JOINID(process.id),
  -- Numbers of the subpasses, separated by commas.
  render_subpasses STRING,
  -- Kind of the stage.
  render_stage_category LONG
)
AS
SELECT s.id, s.ts, s.dur, s.track_id, s.category, s.name, s.depth, s.parent_id, s.arg_set_id,
  extract_arg(s.arg_set_id, 'context_id') AS context_id,
  extract_arg(s.arg_set_id, 'render_target') AS render_target,
  extract_arg(s.arg_set_id, 'render_target_name') AS render_target_name,
  extract_arg(s.arg_set_id, 'render_pass') AS render_pass,
  extract_arg(s.arg_set_id, 'render_pass_name') AS render_pass_name,
  extract_arg(s.arg_set_id, 'command_buffer') AS command_buffer,
  extract_arg(s.arg_set_id, 'command_buffer_name') AS command_buffer_name,
  extract_arg(s.arg_set_id, 'frame_id') AS frame_id,
  extract_arg(s.arg_set_id, 'submission_id') AS submission_id,
  extract_arg(s.arg_set_id, 'hw_queue_id') AS hw_queue_id,
  extract_arg(s.arg_set_id, 'upid') AS upid,
  extract_arg(s.arg_set_id, 'render_subpasses') AS render_subpasses,
  extract_arg(s.arg_set_id, 'render_stage_category') AS render_stage_category
FROM __intrinsic_slice AS s
JOIN __intrinsic_track AS t ON t.id = s.track_id
WHERE t.type IN ('gpu_render_stage', 'vulkan_events', 'gpu_log');

-- When frames should have been drawn, as Android planned it.
CREATE PERFETTO TABLE expected_frame_timeline_slice(
  -- Row of slice.
  id ID(slice.id),
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- How long, in nanoseconds; -1 when the end was not recorded.
  dur DURATION,
  -- The track it is drawn on.
  track_id JOINID(track.id),
  -- Its categories, separated by commas.
  category STRING,
  -- Its name.
  name STRING,
  -- How many slices of the track it lies in; 0 is outermost.
  depth LONG,
  -- The one it belongs to; NULL: none.
  parent_id JOINID(frame_slice.id),
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id LONG,
  -- Number of the frame of the whole display.
  display_frame_token LONG,
  -- Number of the frame of one layer.
  surface_frame_token LONG,
  -- The process.
  upid JOINID(process.id),
  -- Name of the layer.
  layer_name STRING
)
AS
SELECT s.id, s.ts, s.dur, s.track_id, s.category, s.name, s.depth, s.parent_id, s.arg_set_id,
  extract_arg(s.arg_set_id, 'Display frame token') AS display_frame_token,
  extract_arg(s.arg_set_id, 'Surface frame token') AS surface_frame_token,
  t.upid,
  extract_arg(s.arg_set_id, 'Layer name') AS layer_name
FROM __intrinsic_slice AS s
JOIN __intrinsic_track AS t ON t.id = s.track_id
WHERE t.type = 'android_expected_frame_timeline';

-- When frames were drawn, and whether and why they were late.
CREATE PERFETTO TABLE actual_frame_timeline_slice(
  -- Row of slice.
  id ID(slice.id),
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- How long, in nanoseconds; -1 when the end was not recorded.
  dur DURATION,
  -- The track it is drawn on.
  track_id JOINID(track.id),
  -- Its categories, separated by commas.
  category STRING,
  -- Its name.
  name STRING,
  -- How many slices of the track it lies in; 0 is outermost.
  depth LONG,
  -- The one it belongs to; NULL: none.
  parent_id JOINID(frame_slice.id),
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id LONG,
  -- Number of the frame of the whole display.
  display_frame_token LONG,
  -- Number of the frame of one layer.
  surface_frame_token LONG,
  -- The process.
  upid JOINID(process.id),
  -- Name of the layer.
  layer_name STRING,
  -- Whether the frame came on time.
  present_type STRING,
  -- Whether the app finished it in time.
  on_time_finish LONG,
  -- Whether the GPU put the layers together.
  gpu_composition LONG,
  -- Who made it late.
  jank_type STRING,
  -- How bad it was.
  jank_severity_type STRING,
  -- Whether the expected time was still valid.
  prediction_type STRING,
  -- Short form of the jank, for colours.
  jank_tag STRING,
  -- The same by newer rules.
  jank_tag_experimental STRING,
  -- How bad it was, as a number.
  jank_score DOUBLE,
  -- Buffers that were taken before the GPU had finished them.
  latched_unsignaled_count LONG,
  -- How many of them could have been avoided.
  addressable_unsignaled_latch_count LONG,
  -- State of the fence when the buffer was taken.
  latched_fence_state STRING
)
AS
SELECT s.id, s.ts, s.dur, s.track_id, s.category, s.name, s.depth, s.parent_id, s.arg_set_id,
  extract_arg(s.arg_set_id, 'Display frame token') AS display_frame_token,
  extract_arg(s.arg_set_id, 'Surface frame token') AS surface_frame_token,
  t.upid,
  extract_arg(s.arg_set_id, 'Layer name') AS layer_name,
  extract_arg(s.arg_set_id, 'Present type') AS present_type,
  extract_arg(s.arg_set_id, 'On time finish') AS on_time_finish,
  extract_arg(s.arg_set_id, 'GPU composition') AS gpu_composition,
  extract_arg(s.arg_set_id, 'Jank type') AS jank_type,
  extract_arg(s.arg_set_id, 'Jank severity type') AS jank_severity_type,
  extract_arg(s.arg_set_id, 'Prediction type') AS prediction_type,
  extract_arg(s.arg_set_id, 'Jank tag') AS jank_tag,
  extract_arg(s.arg_set_id, 'Jank tag (experimental)') AS jank_tag_experimental,
  extract_arg(s.arg_set_id, 'Jank Severity Score') AS jank_score,
  extract_arg(s.arg_set_id, 'Latched unsignaled count') AS latched_unsignaled_count,
  extract_arg(s.arg_set_id, 'Addressable unsignaled latch count') AS addressable_unsignaled_latch_count,
  extract_arg(s.arg_set_id, 'Latched fence state') AS latched_fence_state
FROM __intrinsic_slice AS s
JOIN __intrinsic_track AS t ON t.id = s.track_id
WHERE t.type = 'android_actual_frame_timeline';
