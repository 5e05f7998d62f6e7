-- Inputs of Android on their way to Chrome.

INCLUDE PERFETTO MODULE slices.with_context;

-- The slices of a step: (android_input_id, ts, dur, id, utid).
CREATE PERFETTO MACRO _chrome_android_input_step(
  pattern Expr
)
RETURNS TableOrSubquery AS
(
  SELECT trim(substr(substr(name, instr(name, 'id=')), 4), ')') AS android_input_id, ts, dur, id, utid
  FROM thread_slice
  WHERE name GLOB $pattern
);

-- The first step of an input: the reader takes it from its device.
CREATE PERFETTO TABLE _chrome_android_motion_input_reader_step(
  -- When it began.
  ts TIMESTAMP,
  -- How long it took.
  dur DURATION,
  -- Row of slice.
  id LONG,
  -- Android's number of the input.
  android_input_id STRING,
  -- The thread.
  utid LONG
) AS
SELECT s.ts, s.dur, s.id, s.android_input_id, s.utid
FROM _chrome_android_input_step!('UnwantedInteractionBlocker::notifyMotion*') AS s;

-- The second: the dispatcher sends it to a window of Chrome.
CREATE PERFETTO TABLE _chrome_android_motion_input_dispatcher_step(
  -- When it began.
  ts TIMESTAMP,
  -- How long it took.
  dur DURATION,
  -- Row of slice.
  id LONG,
  -- Android's number of the input.
  android_input_id STRING,
  -- The thread.
  utid LONG
) AS
SELECT s.ts, s.dur, s.id, s.android_input_id, s.utid
FROM _chrome_android_input_step!('prepareDispatchCycleLocked*chrome*') AS s;

-- When Chrome was given an input.
CREATE PERFETTO TABLE chrome_deliver_android_input_event(
  -- When the delivery began.
  ts TIMESTAMP,
  -- Duration of the delivery in nanoseconds.
  dur DURATION,
  -- Row of thread.
  utid LONG,
  -- Android's number of the input event.
  android_input_id STRING
) AS
SELECT ts, dur, utid, substr(substr(name, instr(name, 'id=')), 4) AS android_input_id
FROM thread_slice
WHERE name GLOB 'deliverInputEvent*';

-- The three steps: read from the device, sent to a window of Chrome, given to Chrome; NULL where only the first ones are known.
CREATE PERFETTO TABLE chrome_android_input(
  -- Android's number of the input event.
  android_input_id STRING,
  -- When the thread that reads devices began with it.
  input_reader_processing_start_ts TIMESTAMP,
  -- When that thread was done.
  input_reader_processing_end_ts TIMESTAMP,
  -- That thread: row of thread.
  input_reader_utid LONG,
  -- When the thread that hands out events began with it.
  input_dispatcher_processing_start_ts TIMESTAMP,
  -- When that thread was done.
  input_dispatcher_processing_end_ts TIMESTAMP,
  -- That thread: row of thread.
  input_dispatcher_utid LONG,
  -- When Chrome's thread began with it.
  deliver_input_event_start_ts TIMESTAMP,
  -- When that thread was done.
  deliver_input_event_end_ts TIMESTAMP,
  -- That thread: row of thread.
  deliver_input_event_utid LONG
) AS
SELECT
  r.android_input_id,
  r.ts AS input_reader_processing_start_ts,
  r.ts + r.dur AS input_reader_processing_end_ts,
  r.utid AS input_reader_utid,
  p.ts AS input_dispatcher_processing_start_ts,
  p.ts + p.dur AS input_dispatcher_processing_end_ts,
  p.utid AS input_dispatcher_utid,
  d.ts AS deliver_input_event_start_ts,
  d.ts + d.dur AS deliver_input_event_end_ts,
  d.utid AS deliver_input_event_utid
FROM _chrome_android_motion_input_reader_step AS r
LEFT JOIN _chrome_android_motion_input_dispatcher_step AS p USING (android_input_id)
LEFT JOIN chrome_deliver_android_input_event AS d USING (android_input_id);
