-- Touches and keys on their way: sent by the system, received by an application, answered, and the frame that shows them.

INCLUDE PERFETTO MODULE android.frames.timeline;
INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE slices.with_context;

-- Messages of the channels by the text between the signs of equality: "sendMessage(inputChannel=name (server), seq=0x1, type=0x1)".
CREATE PERFETTO MACRO _input_messages(
  -- What the names of their slices are like.
  pattern Expr
)
RETURNS TableOrSubquery AS
(
  SELECT
    str_split(str_split(name, '=', 3), ')', 0) AS event_type,
    str_split(str_split(name, '=', 2), ',', 0) AS event_seq,
    str_split(str_split(name, '=', 1), ',', 0) AS event_channel,
    tid,
    thread_name,
    upid,
    pid,
    process_name,
    ts,
    dur,
    track_id,
    id
  FROM thread_slice
  WHERE name GLOB $pattern AND upid IS NOT NULL
);

-- Those that were sent …
CREATE PERFETTO TABLE _input_message_sent AS
SELECT * FROM _input_messages!('sendMessage(*') ORDER BY event_seq, id;

-- … and those that were received.
CREATE PERFETTO TABLE _input_message_received AS
SELECT * FROM _input_messages!('receiveMessage(*') ORDER BY event_seq, id;

-- The name of a channel without what differs from run to run: "ccf6448 PopupWindow:b20fb4d" gives "PopupWindow", "b3407d8 a.b/a.b.C"
-- gives "a.b/a.b.C", "PointerEventDispatcher23" gives "PointerEventDispatcher". Names that begin with brackets stay.
CREATE PERFETTO FUNCTION _normalize_event_channel(
  -- Name of the channel.
  event_channel STRING
)
RETURNS STRING AS
SELECT
  CASE
    WHEN $event_channel GLOB '[[]*] *' THEN $event_channel
    WHEN $event_channel GLOB '* *:*'
      THEN trim(substr(str_split($event_channel, ':', 0), instr($event_channel, ' ') + 1))
    WHEN $event_channel GLOB '* *' THEN trim(substr($event_channel, instr($event_channel, ' ') + 1))
    WHEN $event_channel GLOB '*[0-9]' THEN regexp_extract($event_channel, '^(.*[a-zA-Z])')
    ELSE $event_channel
  END;

-- The number of an event that the name of a slice tells: "…id=0x14ae, …" or "…id=0x14ae)".
CREATE PERFETTO FUNCTION _input_event_id_of(
  name STRING
)
RETURNS STRING AS
SELECT str_split(str_split(str_split($name, 'id=', 1), ',', 0), ')', 0);

-- When events were read from their device.
CREATE PERFETTO TABLE _input_read_time AS
SELECT
  name,
  _input_event_id_of(name) AS input_event_id,
  cast_int!(str_split(str_split(name, 'eventTime=', 1), ')', 0)) AS event_time,
  ts AS read_time,
  id,
  track_id,
  dur
FROM slice
WHERE name GLOB 'UnwantedInteractionBlocker::notifyMotion*';

-- The event that a message carried: the third slice around its sending tells, behind the second sign of equality. A channel is named
-- after the process that it leads to.
CREATE PERFETTO TABLE _event_seq_to_input_event_id AS
SELECT
  str_split(str_split(m.name, '=', 2), ',', 0) AS event_seq,
  str_split(str_split(m.name, '=', 1), ',', 0) AS event_channel,
  str_split(str_split(str_split(str_split(m.name, '=', 1), ',', 0), ' ', 1), '/', 0) AS process_name,
  str_split(str_split(enqueue.name, '=', 2), ')', 0) AS input_event_id,
  m.utid,
  m.thread_name
FROM thread_slice AS m
JOIN slice AS publish ON publish.id = m.parent_id
JOIN slice AS dispatch ON dispatch.id = publish.parent_id
JOIN slice AS enqueue ON enqueue.id = dispatch.parent_id
WHERE m.name GLOB 'sendMessage(*' AND m.thread_name = 'InputDispatcher';

-- Deliveries of events to the view that they are for. The slice around each tells what was done, and when it was dealt with.
CREATE PERFETTO TABLE _clean_deliver_events AS
SELECT
  d.id,
  d.ts,
  d.dur,
  d.utid,
  d.upid,
  d.process_name,
  str_split(d.name, '=', 3) AS extracted_input_event_id,
  str_split(str_split(p.name, '_', 1), ' ', 0) AS event_action,
  p.ts AS consume_time,
  p.ts + p.dur AS finish_time
FROM thread_slice AS d
JOIN slice AS p ON p.id = d.parent_id
WHERE d.name GLOB 'deliverInputEvent src=*';

-- Turns of the user interface's thread, by the number of the frame.
CREATE PERFETTO TABLE _frame_choreographer_lookup AS
SELECT id, track_id, ts, dur, cast_int!(str_split(name, ' ', 1)) AS frame_id
FROM slice
WHERE name GLOB 'Choreographer#doFrame*';

-- Frames with that turn.
CREATE PERFETTO TABLE _clean_android_frames AS
SELECT
  f.ts, f.dur, c.id AS do_frame_id, c.ts AS do_frame_ts, c.dur AS do_frame_dur, f.ui_thread_utid AS utid, f.frame_id
FROM android_frames AS f
JOIN slice AS c ON c.id = f.do_frame_id;

-- The turns in which an event was delivered, if it was in one: they are its frames …
CREATE PERFETTO TABLE _input_event_frame_intersections AS
SELECT i.id_0 AS do_frame_id_key, i.id_1 AS event_id_key, 0 AS is_speculative_match
FROM _interval_intersect!((
  (SELECT do_frame_id AS id, do_frame_ts AS ts, do_frame_dur AS dur, utid FROM _clean_android_frames WHERE do_frame_dur > 0),
  (SELECT id, ts, dur, utid FROM _clean_deliver_events WHERE dur > 0)
), (utid)) AS i;

-- … events that were delivered outside of one …
CREATE PERFETTO TABLE _input_events_pending_frame_match AS
SELECT * FROM _clean_deliver_events WHERE id NOT IN (SELECT event_id_key FROM _input_event_frame_intersections);

-- … likely show up in the next turn of the thread …
CREATE PERFETTO TABLE _input_event_frame_speculative_matches AS
SELECT do_frame_id_key, event_id_key, 1 AS is_speculative_match
FROM (
  SELECT
    e.id AS event_id_key,
    (
      SELECT f.do_frame_id
      FROM _clean_android_frames AS f
      WHERE f.utid = e.utid AND f.do_frame_ts >= e.ts
      ORDER BY f.do_frame_ts
      LIMIT 1
    ) AS do_frame_id_key
  FROM _input_events_pending_frame_match AS e
)
WHERE do_frame_id_key IS NOT NULL;

-- … and both together.
CREATE PERFETTO TABLE _input_event_frame_association AS
SELECT * FROM _input_event_frame_intersections
UNION ALL
SELECT * FROM _input_event_frame_speculative_matches;

-- Deliveries with the frames of each, and the channels that they came by.
CREATE PERFETTO TABLE _input_event_id_to_android_frame AS
SELECT
  d.extracted_input_event_id AS input_event_id,
  d.event_action,
  d.consume_time,
  d.finish_time,
  d.utid,
  d.upid,
  d.process_name,
  f.frame_id,
  f.ts AS frame_ts,
  m.event_channel,
  a.is_speculative_match
FROM _input_event_frame_association AS a
JOIN _clean_android_frames AS f ON f.do_frame_id = a.do_frame_id_key
JOIN _clean_deliver_events AS d ON d.id = a.event_id_key
JOIN _event_seq_to_input_event_id AS m
  ON m.input_event_id = d.extracted_input_event_id AND m.process_name = d.process_name;

-- Frames of applications that were shown, with the frame of the display that showed them.
CREATE PERFETTO TABLE _app_frame_to_surface_flinger_frame AS
SELECT
  app.surface_frame_token AS app_surface_frame_token,
  sf.ts AS surface_flinger_ts,
  sf.dur AS surface_flinger_dur,
  app.ts AS app_ts,
  app.present_type,
  app.upid
FROM actual_frame_timeline_slice AS sf
JOIN actual_frame_timeline_slice AS app ON app.display_frame_token = sf.display_frame_token AND app.id != sf.id
WHERE sf.surface_frame_token IS NULL AND app.present_type != 'Dropped Frame'
ORDER BY sf.id, app.id;

CREATE PERFETTO INDEX _app_frame_to_surface_flinger_frame_by_app
ON _app_frame_to_surface_flinger_frame(upid);

-- Of each event that was sent and read: its frame, and when the first frame of the process that is not older was on the screen.
CREATE PERFETTO TABLE _first_non_dropped_frame_after_input AS
SELECT
  r.input_event_id,
  r.read_time,
  r.event_time,
  (
    SELECT s.surface_flinger_ts + s.surface_flinger_dur
    FROM _app_frame_to_surface_flinger_frame AS s
    WHERE s.upid = f.upid AND s.app_ts >= f.frame_ts
    ORDER BY s._auto_id
    LIMIT 1
  ) AS present_time,
  f.frame_id,
  m.event_seq,
  f.event_action,
  f.is_speculative_match
FROM _event_seq_to_input_event_id AS m
JOIN _input_read_time AS r USING (input_event_id)
LEFT JOIN _input_event_id_to_android_frame AS f
  ON f.input_event_id = m.input_event_id AND f.event_channel = m.event_channel;

-- Every event that was sent, received, answered, and the answer received.
CREATE PERFETTO TABLE android_input_events(
  -- From sending to receipt.
  dispatch_latency_dur DURATION,
  -- From receipt to the application's answer.
  handling_latency_dur DURATION,
  -- From the answer to its receipt by the system.
  ack_latency_dur DURATION,
  -- From sending to the receipt of the answer.
  total_latency_dur DURATION,
  -- From the device to the end of the frame that shows it; NULL: no frame is known.
  end_to_end_latency_dur DURATION,
  -- The kernel's number of the receiving thread.
  tid LONG,
  -- Name of the receiving thread.
  thread_name STRING,
  -- Row of process.
  upid JOINID(process.upid),
  -- The kernel's number of the process.
  pid LONG,
  -- Name of the process.
  process_name STRING,
  -- Type of the message.
  event_type STRING,
  -- What was done: DOWN, MOVE, UP and others.
  event_action STRING,
  -- Number of the event in its channel.
  event_seq STRING,
  -- Name of the channel.
  event_channel STRING,
  -- Name of the channel without what differs from run to run.
  normalized_event_channel STRING,
  -- Number of the event on its way through the system.
  input_event_id STRING,
  -- When it was read from the device.
  read_time TIMESTAMP,
  -- Track of the sending: row of track.
  dispatch_track_id JOINID(track.id),
  -- Start of sending.
  dispatch_ts TIMESTAMP,
  -- Length of sending.
  dispatch_dur DURATION,
  -- Track of the receipt: row of track.
  receive_track_id JOINID(track.id),
  -- Start of receipt.
  receive_ts TIMESTAMP,
  -- Length of receipt.
  receive_dur DURATION,
  -- The frame that shows it.
  frame_id LONG,
  -- Is the frame a guess, the next one of the thread? NULL: no frame is known.
  is_speculative_frame BOOL,
  -- When the device says that it happened.
  event_time TIMESTAMP
) AS
WITH
  -- both ends of a channel, by the name that the system has for it
  received AS (
    SELECT *, replace(event_channel, '(client)', '(server)') AS channel
    FROM _input_message_received
    WHERE event_type NOT IN ('0x2', 'FINISHED')
  ),
  finished AS (
    SELECT *, replace(event_channel, '(client)', '(server)') AS channel
    FROM _input_message_sent
    WHERE thread_name != 'InputDispatcher'
  ),
  acknowledged AS (SELECT * FROM _input_message_received WHERE event_type IN ('0x2', 'FINISHED'))
SELECT
  r.ts - d.ts AS dispatch_latency_dur,
  f.ts - r.ts AS handling_latency_dur,
  a.ts - f.ts AS ack_latency_dur,
  a.ts - d.ts AS total_latency_dur,
  e.present_time - e.read_time AS end_to_end_latency_dur,
  f.tid,
  f.thread_name,
  f.upid,
  f.pid,
  f.process_name,
  d.event_type,
  e.event_action,
  d.event_seq,
  d.event_channel,
  _normalize_event_channel(d.event_channel) AS normalized_event_channel,
  i.input_event_id,
  t.read_time,
  d.track_id AS dispatch_track_id,
  d.ts AS dispatch_ts,
  d.dur AS dispatch_dur,
  r.ts AS receive_ts,
  r.dur AS receive_dur,
  r.track_id AS receive_track_id,
  e.frame_id,
  e.is_speculative_match AS is_speculative_frame,
  t.event_time
FROM _input_message_sent AS d
JOIN received AS r ON r.channel = d.event_channel AND r.event_seq = d.event_seq
JOIN finished AS f ON f.channel = d.event_channel AND f.event_seq = d.event_seq
JOIN acknowledged AS a ON a.event_channel = d.event_channel AND a.event_seq = d.event_seq
LEFT JOIN _first_non_dropped_frame_after_input AS e ON e.event_seq = d.event_seq
LEFT JOIN _event_seq_to_input_event_id AS i ON i.event_seq = d.event_seq AND i.event_channel = d.event_channel
LEFT JOIN _input_read_time AS t ON t.input_event_id = i.input_event_id
WHERE d.thread_name = 'InputDispatcher'
ORDER BY d.event_seq, d.event_channel;

-- Applications' work on messages, by the number of the message in its channel.
CREATE PERFETTO TABLE _input_consumers_lookup AS
SELECT id, track_id, ts, dur, printf('0x%x', extract_arg(arg_set_id, 'cookie')) AS cookie
FROM slice
WHERE name GLOB 'InputConsumer processing on*';

-- The stages of every event: reading, sending, receipt, and the application's work on it.
CREATE PERFETTO TABLE _input_lifecycles AS
SELECT
  e.input_event_id AS input_id,
  e.event_channel AS channel,
  e.end_to_end_latency_dur AS total_latency,
  a.read_time AS ts_reader,
  d.ts AS ts_dispatch,
  r.ts AS ts_receive,
  c.ts AS ts_consume,
  a.id AS id_reader,
  a.track_id AS track_reader,
  a.dur AS dur_reader,
  d.id AS id_dispatch,
  d.track_id AS track_dispatch,
  d.dur AS dur_dispatch,
  r.id AS id_receive,
  r.track_id AS track_receive,
  r.dur AS dur_receive,
  c.id AS id_consume,
  c.track_id AS track_consume,
  c.dur AS dur_consume,
  e.is_speculative_frame
FROM android_input_events AS e
JOIN _input_message_sent AS d
  ON d.track_id = e.dispatch_track_id AND d.ts = e.dispatch_ts AND d.event_seq = e.event_seq
JOIN _input_message_received AS r
  ON r.track_id = e.receive_track_id AND r.ts = e.receive_ts AND r.event_seq = e.event_seq
LEFT JOIN _input_read_time AS a ON a.read_time = e.read_time AND a.input_event_id = e.input_event_id
LEFT JOIN _input_consumers_lookup AS c ON c.cookie = e.event_seq;

-- The whole way of the input event that a slice is a stage of.
CREATE PERFETTO FUNCTION _android_input_lifecycle_by_slice_id(
  -- Row of slice: any stage.
  slice_id LONG
)
RETURNS TABLE(
  -- Number of the input event.
  input_id STRING,
  -- Name of the channel.
  channel STRING,
  -- From reading to the end of the frame.
  total_latency LONG,
  -- Start of reading.
  ts_reader LONG,
  -- Start of sending.
  ts_dispatch LONG,
  -- Start of receipt.
  ts_receive LONG,
  -- Start of delivery.
  ts_consume LONG,
  -- Reading: row of slice.
  id_reader LONG,
  -- Reading: row of track.
  track_reader LONG,
  -- Length of reading.
  dur_reader LONG,
  -- Sending: row of slice.
  id_dispatch LONG,
  -- Sending: row of track.
  track_dispatch LONG,
  -- Length of sending.
  dur_dispatch LONG,
  -- Receipt: row of slice.
  id_receive LONG,
  -- Receipt: row of track.
  track_receive LONG,
  -- Length of receipt.
  dur_receive LONG,
  -- Delivery: row of slice.
  id_consume LONG,
  -- Delivery: row of track.
  track_consume LONG,
  -- Length of delivery.
  dur_consume LONG,
  -- Is the frame a guess?
  is_speculative_frame BOOL
) AS
SELECT *
FROM _input_lifecycles
WHERE $slice_id IN (id_reader, id_dispatch, id_receive, id_consume);

-- Compositions of SurfaceFlinger's main thread: "composite 123", by the number of the display's frame.
CREATE PERFETTO TABLE _input_sf_composite AS
SELECT id, track_id, ts, dur, cast_int!(regexp_extract(name, '^composite ([0-9]+)')) AS sf_vsync
FROM thread_slice
WHERE name GLOB 'composite [0-9]*' AND process_name GLOB '*surfaceflinger';

-- The first composition that shows each frame of an application.
CREATE PERFETTO TABLE _input_sf_resolved AS
SELECT c.id, c.track_id, min(c.ts) AS ts, c.dur, c.sf_vsync, a.surface_frame_token AS app_vsync, a.upid AS app_upid
FROM actual_frame_timeline_slice AS a
JOIN _input_sf_composite AS c ON c.sf_vsync = a.display_frame_token
WHERE a.surface_frame_token > 0
GROUP BY app_vsync, app_upid;

-- Frames of applications by their stages: the turn of the user interface's thread, the first drawing, the first composition.
CREATE PERFETTO VIEW _android_input_frames AS
WITH
  drawn AS (
    SELECT d.frame_id, d.upid, s.id, s.track_id, min(s.ts) AS ts, s.dur
    FROM android_frames_draw_frame AS d
    JOIN slice AS s USING (id)
    GROUP BY d.frame_id, d.upid
  )
SELECT
  f.frame_id,
  f.upid,
  s.id AS id_do_frame,
  s.track_id AS track_do_frame,
  s.ts AS ts_do_frame,
  s.dur AS dur_do_frame,
  d.id AS id_draw_frames,
  d.track_id AS track_draw_frames,
  d.ts AS ts_draw_frames,
  d.dur AS dur_draw_frames,
  c.id AS id_sf,
  c.track_id AS track_sf,
  c.ts AS ts_sf,
  c.dur AS dur_sf
FROM android_frames_choreographer_do_frame AS f
JOIN slice AS s USING (id)
LEFT JOIN drawn AS d ON d.frame_id = f.frame_id AND d.upid = f.upid
LEFT JOIN _input_sf_resolved AS c ON c.app_vsync = f.frame_id AND c.app_upid = f.upid;

-- Keys, as the system handled them.
CREATE PERFETTO VIEW android_key_events(
  -- Row of __intrinsic_android_key_events.
  id LONG,
  -- Number of the input event.
  event_id LONG,
  -- When it happened.
  ts TIMESTAMP,
  -- Details: the set of args.
  arg_set_id ARGSETID,
  -- Class of device, by Android's bits.
  source LONG,
  -- What was done: Android's number of the action.
  action LONG,
  -- Number of the input device.
  device_id LONG,
  -- Number of the display.
  display_id LONG,
  -- Android's number of the key.
  key_code LONG
) AS
SELECT id, event_id, ts, arg_set_id, source, action, device_id, display_id, key_code
FROM __intrinsic_android_key_events;

-- Touches and pointers, as the system handled them.
CREATE PERFETTO VIEW android_motion_events(
  -- Row of __intrinsic_android_motion_events.
  id LONG,
  -- Number of the input event.
  event_id LONG,
  -- When it happened.
  ts TIMESTAMP,
  -- Details: the set of args.
  arg_set_id ARGSETID,
  -- Class of device, by Android's bits.
  source LONG,
  -- What was done: Android's number of the action.
  action LONG,
  -- Number of the input device.
  device_id LONG,
  -- Number of the display.
  display_id LONG
) AS
SELECT id, event_id, ts, arg_set_id, source, action, device_id, display_id
FROM __intrinsic_android_motion_events;

-- The windows that events were sent to.
CREATE PERFETTO VIEW android_input_event_dispatch(
  -- Row of __intrinsic_android_input_event_dispatch.
  id LONG,
  -- Number of the input event.
  event_id LONG,
  -- Details: the set of args.
  arg_set_id ARGSETID,
  -- Number of the frame that the event is for.
  vsync_id LONG,
  -- Number of the window.
  window_id LONG
) AS
SELECT id, event_id, arg_set_id, vsync_id, window_id
FROM __intrinsic_android_input_event_dispatch;
