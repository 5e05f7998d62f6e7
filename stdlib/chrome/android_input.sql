-- Inputs of Android on their way to Chrome.

INCLUDE PERFETTO MODULE slices.with_context;

-- The first slice of a step for each input: (android_input_id, ts, dur, id, utid).
CREATE PERFETTO MACRO _chrome_android_input_step(
  pattern Expr
)
RETURNS TableOrSubquery AS
(
  SELECT regexp_extract(name, 'id=(0x[0-9a-f]+)') AS android_input_id, min(ts) AS ts, dur, id, utid
  FROM thread_slice
  WHERE name GLOB $pattern AND name GLOB '*id=0x*'
  GROUP BY 1
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
FROM _chrome_android_input_step!('UnwantedInteractionBlocker::notifyMotion*') AS s
ORDER BY s.ts;

-- The second: the dispatcher sends it to the window that it is for.
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
FROM _chrome_android_input_step!('prepareDispatchCycleLocked*') AS s
ORDER BY s.ts;

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
SELECT ts, dur, utid, regexp_extract(name, 'id=(0x[0-9a-f]+)') AS android_input_id
FROM thread_slice
WHERE name GLOB 'deliverInputEvent src=*id=0x*';

-- The three steps: read from the device, sent to the window, given to Chrome.
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
  d.android_input_id,
  r.ts AS input_reader_processing_start_ts,
  r.ts + r.dur AS input_reader_processing_end_ts,
  r.utid AS input_reader_utid,
  p.ts AS input_dispatcher_processing_start_ts,
  p.ts + p.dur AS input_dispatcher_processing_end_ts,
  p.utid AS input_dispatcher_utid,
  d.ts AS deliver_input_event_start_ts,
  d.ts + d.dur AS deliver_input_event_end_ts,
  d.utid AS deliver_input_event_utid
FROM chrome_deliver_android_input_event AS d
LEFT JOIN _chrome_android_motion_input_reader_step AS r USING (android_input_id)
LEFT JOIN _chrome_android_motion_input_dispatcher_step AS p USING (android_input_id);
