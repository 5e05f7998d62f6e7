-- Touches and keys on their way: sent by the system, received by an application, answered, and the frame that shows them.

INCLUDE PERFETTO MODULE android.frames.timeline;
INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE slices.with_context;

-- Messages of the channels: "sendMessage(inputChannel=name (server), seq=0x1, type=0x1)" and the same with receiveMessage.
CREATE PERFETTO TABLE _input_messages AS
SELECT
  name GLOB 'send*' AS sent,
  regexp_extract(name, 'inputChannel=([^,]*),') AS event_channel,
  regexp_extract(name, 'seq=([^,]*),') AS event_seq,
  regexp_extract(name, 'type=([^)]*)\)') AS event_type,
  id,
  parent_id,
  tid,
  thread_name,
  upid,
  pid,
  process_name,
  ts,
  dur,
  track_id
FROM thread_slice
WHERE name GLOB 'sendMessage(*' OR name GLOB 'receiveMessage(*';

-- Those that were sent …
CREATE PERFETTO TABLE _input_message_sent AS
SELECT event_channel, event_seq, event_type, id, parent_id, tid, thread_name, upid, pid, process_name, ts, dur, track_id
FROM _input_messages
WHERE sent;

-- … and those that were received.
CREATE PERFETTO TABLE _input_message_received AS
SELECT event_channel, event_seq, event_type, id, parent_id, tid, thread_name, upid, pid, process_name, ts, dur, track_id
FROM _input_messages
WHERE NOT sent;

-- The name that both ends of a channel have in common.
CREATE PERFETTO FUNCTION _normalize_event_channel(
  -- Name of the channel, as one end has it.
  event_channel STRING
)
RETURNS STRING AS
SELECT regexp_replace_simple($event_channel, ' \((client|server)\)$', '');

-- When an event was read from its device.
CREATE PERFETTO TABLE _input_read_time AS
SELECT
  regexp_extract(name, 'id=(0x[0-9a-f]+)') AS input_event_id,
  min(ts) AS read_time,
  min(cast_int!(regexp_extract(name, 'eventTime=([0-9]+)'))) AS event_time
FROM slice
WHERE name GLOB 'UnwantedInteractionBlocker::notifyMotion*'
GROUP BY 1;

-- The event that a message carried: the slice around its sending tells.
CREATE PERFETTO TABLE _event_seq_to_input_event_id AS
SELECT m.event_seq, m.event_channel, regexp_extract(a.name, 'id=(0x[0-9a-f]+)') AS input_event_id
FROM _input_messages AS m
JOIN ancestor_slice(m.id) AS a
WHERE m.sent AND m.thread_name = 'InputDispatcher' AND a.name GLOB '*id=0x*'
GROUP BY m.id;

-- Deliveries of events to the view that they are for.
CREATE PERFETTO TABLE _clean_deliver_events AS
SELECT
  d.id,
  regexp_extract(d.name, 'id=(0x[0-9a-f]+)') AS input_event_id,
  regexp_extract(p.name, '_([A-Za-z]+)') AS event_action,
  d.utid,
  d.upid,
  d.ts,
  max(d.dur, 0) AS dur,
  d.track_id
FROM thread_slice AS d
JOIN slice AS p ON p.id = d.parent_id
WHERE d.name GLOB 'deliverInputEvent src=*';

-- Turns of the user interface's thread, by the number of the frame.
CREATE PERFETTO TABLE _frame_choreographer_lookup AS
SELECT f.frame_id, f.upid, f.ui_thread_utid AS utid, s.id, s.track_id, s.ts, s.dur
FROM android_frames_choreographer_do_frame AS f
JOIN slice AS s USING (id);

-- Frames with that turn: (id, frame_id, upid, utid, ts, dur), id being that of the turn.
CREATE PERFETTO TABLE _clean_android_frames AS
SELECT c.id, c.frame_id, c.upid, c.utid, c.ts, iif(c.dur < 0, trace_end() - c.ts, c.dur) AS dur
FROM android_frames AS f
JOIN _frame_choreographer_lookup AS c ON c.id = f.do_frame_id;

-- The turn in which an event was delivered, if it was in one: that is its frame …
CREATE PERFETTO TABLE _input_event_frame_intersections AS
SELECT i.id_0 AS id, min(f.frame_id) AS frame_id
FROM _interval_intersect!((_clean_deliver_events, _clean_android_frames), (utid)) AS i
JOIN _clean_android_frames AS f ON f.id = i.id_1
GROUP BY i.id_0;

-- … events that were delivered outside of one …
CREATE PERFETTO TABLE _input_events_pending_frame_match AS
SELECT * FROM _clean_deliver_events WHERE id NOT IN (SELECT id FROM _input_event_frame_intersections);

-- … likely show up in the next frame of the process …
CREATE PERFETTO TABLE _input_event_frame_speculative_matches AS
SELECT id, frame_id
FROM (
  SELECT
    d.id,
    (SELECT f.frame_id FROM _clean_android_frames AS f WHERE f.upid = d.upid AND f.ts > d.ts ORDER BY f.ts LIMIT 1) AS frame_id
  FROM _input_events_pending_frame_match AS d
)
WHERE frame_id IS NOT NULL;

-- … and both together.
CREATE PERFETTO TABLE _input_event_frame_association AS
SELECT id, frame_id, 0 AS is_speculative_frame FROM _input_event_frame_intersections
UNION ALL
SELECT id, frame_id, 1 FROM _input_event_frame_speculative_matches;

-- Deliveries with the frame of each; NULL: none followed.
CREATE PERFETTO TABLE _input_event_id_to_android_frame AS
SELECT d.input_event_id, d.event_action, d.upid, d.ts, a.frame_id, a.is_speculative_frame
FROM _clean_deliver_events AS d
LEFT JOIN _input_event_frame_association AS a USING (id);

-- Frames of applications with the frame of the display that showed them, and when that was on the screen.
CREATE PERFETTO TABLE _app_frame_to_surface_flinger_frame AS
SELECT
  surface_frame_token AS app_frame_id,
  upid AS app_upid,
  display_frame_token AS surface_flinger_frame_id,
  max(ts + dur) AS present_ts,
  max(present_type != 'Dropped Frame') AS is_shown
FROM actual_frame_timeline_slice
WHERE surface_frame_token > 0 AND dur >= 0
GROUP BY surface_frame_token, upid;

CREATE PERFETTO INDEX _app_frame_to_surface_flinger_frame_by_app
ON _app_frame_to_surface_flinger_frame(app_upid, app_frame_id);

-- What an event's frame, or the first one behind it that was not dropped, shows of it, and when.
CREATE PERFETTO TABLE _first_non_dropped_frame_after_input AS
SELECT
  i.input_event_id,
  i.upid,
  i.ts,
  i.frame_id,
  (
    SELECT s.present_ts
    FROM _app_frame_to_surface_flinger_frame AS s
    WHERE s.app_upid = i.upid AND s.app_frame_id >= i.frame_id AND s.is_shown
    ORDER BY s.app_frame_id
    LIMIT 1
  ) AS present_ts
FROM _input_event_id_to_android_frame AS i
WHERE i.frame_id IS NOT NULL;

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
  -- Is the frame a guess? Never: frames that are not known are NULL.
  is_speculative_frame BOOL,
  -- When the device says that it happened.
  event_time TIMESTAMP
) AS
WITH
  -- one row a message, channels by the name that both ends share
  messages AS (
    SELECT *, _normalize_event_channel(event_channel) AS channel
    FROM _input_messages
  ),
  acknowledged AS (SELECT * FROM messages WHERE NOT sent AND event_type IN ('0x2', 'FINISHED'))
SELECT
  r.ts - d.ts AS dispatch_latency_dur,
  f.ts - r.ts AS handling_latency_dur,
  a.ts - f.ts AS ack_latency_dur,
  a.ts - d.ts AS total_latency_dur,
  (
    SELECT p.present_ts
    FROM _first_non_dropped_frame_after_input AS p
    WHERE p.input_event_id = e.input_event_id AND p.upid = e.upid AND p.ts = e.ts
  ) - t.read_time AS end_to_end_latency_dur,
  f.tid,
  f.thread_name,
  f.upid,
  f.pid,
  f.process_name,
  d.event_type,
  e.event_action,
  d.event_seq,
  d.event_channel,
  d.channel AS normalized_event_channel,
  i.input_event_id,
  t.read_time,
  d.track_id AS dispatch_track_id,
  d.ts AS dispatch_ts,
  d.dur AS dispatch_dur,
  r.track_id AS receive_track_id,
  r.ts AS receive_ts,
  r.dur AS receive_dur,
  e.frame_id,
  e.is_speculative_frame,
  t.event_time
FROM messages AS d
JOIN messages AS r
  ON r.channel = d.channel AND r.event_seq = d.event_seq AND NOT r.sent AND r.event_type NOT IN ('0x2', 'FINISHED')
JOIN messages AS f
  ON f.channel = d.channel AND f.event_seq = d.event_seq AND f.sent AND f.thread_name != 'InputDispatcher'
JOIN acknowledged AS a ON a.channel = d.channel AND a.event_seq = d.event_seq
LEFT JOIN _event_seq_to_input_event_id AS i ON i.event_seq = d.event_seq AND i.event_channel = d.event_channel
LEFT JOIN _input_read_time AS t USING (input_event_id)
LEFT JOIN _input_event_id_to_android_frame AS e ON e.input_event_id = i.input_event_id AND e.ts >= r.ts AND e.ts <= f.ts
WHERE d.sent AND d.thread_name = 'InputDispatcher'
ORDER BY d.ts;

-- The first delivery of each event in a process.
CREATE PERFETTO TABLE _input_consumers_lookup AS
SELECT input_event_id, upid, min(ts) AS ts, id, track_id, dur
FROM _clean_deliver_events
GROUP BY input_event_id, upid;

-- The stages of every event: reading, sending, receipt, and the delivery to the application's view.
CREATE PERFETTO TABLE _input_lifecycles AS
WITH
  readers AS (
    SELECT regexp_extract(name, 'id=(0x[0-9a-f]+)') AS input_event_id, min(ts) AS ts, id, track_id, dur
    FROM slice
    WHERE name GLOB 'UnwantedInteractionBlocker::notifyMotion*'
    GROUP BY 1
  )
SELECT
  e.input_event_id AS input_id,
  e.event_channel AS channel,
  e.end_to_end_latency_dur AS total_latency,
  a.ts AS ts_reader,
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
JOIN _input_messages AS d
  ON d.track_id = e.dispatch_track_id AND d.ts = e.dispatch_ts AND d.event_seq = e.event_seq AND d.sent
JOIN _input_messages AS r
  ON r.track_id = e.receive_track_id AND r.ts = e.receive_ts AND r.event_seq = e.event_seq AND NOT r.sent
LEFT JOIN readers AS a ON a.input_event_id = e.input_event_id
LEFT JOIN _input_consumers_lookup AS c ON c.input_event_id = e.input_event_id AND c.upid = e.upid;

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
