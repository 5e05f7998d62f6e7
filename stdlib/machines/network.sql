-- Packets as the machines of the trace saw them: what one sends, another receives a little later.
--
-- Where headers of packets were recorded (packet_headers of linux.ftrace; net_dev_queue and net_if_receive_skb of LTTng),
-- machine_network_messages knows each packet by its connection and sequence numbers. The other tables need the events
-- net/net_dev_xmit on the sender and net/netif_receive_skb on the receiver, and match packets by length and time, which holds
-- on a link that carries little else.

-- Packets that were sent or received, one row an event.
CREATE PERFETTO TABLE machine_network_packets(
  -- Row of ftrace_event.
  id LONG,
  -- Time of the event.
  ts TIMESTAMP,
  -- Row of machine.
  machine_id JOINID(machine.id),
  -- 'send' or 'receive'.
  direction STRING,
  -- Network device.
  device STRING,
  -- Bytes of the packet.
  length LONG,
  -- Row of thread that was on the CPU.
  utid JOINID(thread.id),
  -- Number of packets of this length in this direction on the machine, from 1.
  ordinal LONG
) AS
SELECT
  id,
  ts,
  machine_id,
  direction,
  device,
  length,
  utid,
  row_number() OVER (PARTITION BY machine_id, direction, length ORDER BY ts) AS ordinal
FROM (
  SELECT
    id,
    ts,
    _machine_of_ucpu!(ucpu) AS machine_id,
    iif(name = 'net_dev_xmit', 'send', 'receive') AS direction,
    extract_arg(arg_set_id, 'name') AS device,
    extract_arg(arg_set_id, 'len') AS length,
    utid
  FROM ftrace_event
  WHERE name IN ('net_dev_xmit', 'netif_receive_skb')
)
WHERE device != 'lo';

-- Pairs of a packet sent by one machine and received by another: a send and a receipt of its length with neither between
-- them, within a second. So each packet is in one pair at most; where several of a length are on the way at once, only the
-- last of them is paired. one_way_dur also holds what the clocks are apart.
CREATE PERFETTO TABLE machine_network_one_way(
  -- Row of ftrace_event: sent.
  send_id LONG,
  -- Row of ftrace_event: received.
  receive_id LONG,
  -- When it was sent.
  ts TIMESTAMP,
  -- Until it was received.
  one_way_dur DURATION,
  -- Who sent it.
  from_machine_id JOINID(machine.id),
  -- Who received it.
  to_machine_id JOINID(machine.id),
  -- Bytes of the packet.
  length LONG
) AS
WITH
  links AS (
    SELECT a.id AS from_machine_id, b.id AS to_machine_id
    FROM machine AS a
    JOIN machine AS b ON a.id != b.id
  ),
  -- the link header (14 bytes) is gone from what is received, or was not counted
  events AS (
    SELECT l.*, p.length, p.id, p.ts, 1 AS sent
    FROM links AS l
    JOIN machine_network_packets AS p ON p.machine_id = l.from_machine_id AND p.direction = 'send'
    UNION ALL
    SELECT l.*, p.length + h.header, p.id, p.ts, 0
    FROM links AS l
    JOIN machine_network_packets AS p ON p.machine_id = l.to_machine_id AND p.direction = 'receive'
    JOIN (SELECT 0 AS header UNION ALL SELECT 14) AS h
  ),
  neighbours AS (
    SELECT
      *,
      lead(id) OVER on_link AS next_id,
      lead(ts) OVER on_link AS next_ts,
      lead(sent) OVER on_link AS next_sent
    FROM events
    WINDOW on_link AS (PARTITION BY from_machine_id, to_machine_id, length ORDER BY ts, sent DESC)
  )
SELECT
  id AS send_id,
  next_id AS receive_id,
  ts,
  next_ts - ts AS one_way_dur,
  from_machine_id,
  to_machine_id,
  length
FROM neighbours
WHERE sent AND next_sent = 0 AND next_ts - ts <= 1000000000
GROUP BY next_id
HAVING ts = max(ts)
ORDER BY ts;

-- The thread that an end of a connection belongs to: the one that sends there most often. What is sent from an interrupt, on
-- an idle CPU, does not count.
CREATE PERFETTO TABLE _machine_network_owner AS
SELECT machine_id, source, source_port, destination, destination_port, utid, upid
FROM (
  SELECT
    p.machine_id,
    p.source,
    p.source_port,
    p.destination,
    p.destination_port,
    p.utid,
    t.upid,
    row_number() OVER (
      PARTITION BY p.machine_id, p.source, p.source_port, p.destination, p.destination_port
      ORDER BY count(*) DESC, p.utid
    ) AS place
  FROM network_packet AS p
  JOIN thread AS t USING (utid)
  WHERE p.direction = 'send' AND p.length > 0 AND NOT coalesce(t.is_idle, 0)
  GROUP BY p.machine_id, p.source, p.source_port, p.destination, p.destination_port, p.utid
)
WHERE place = 1;

-- When the driver had taken what was sent: the next net_dev_xmit of a packet of that length. Where several of a length wait at
-- once, nothing is said.
CREATE PERFETTO TABLE _machine_network_xmit AS
WITH
  events AS (
    SELECT id AS packet_id, ts, machine_id, frame_length
    FROM network_packet
    WHERE direction = 'send'
    UNION ALL
    SELECT NULL, ts, _machine_of_ucpu!(ucpu), extract_arg(arg_set_id, 'len')
    FROM ftrace_event
    WHERE name = 'net_dev_xmit' AND EXISTS(SELECT 1 FROM network_packet)
  ),
  neighbours AS (
    SELECT
      packet_id,
      lag(packet_id) OVER one AS packet_before,
      lead(packet_id) OVER one AS packet_behind,
      lead(ts) OVER one AS ts
    FROM events
    WINDOW one AS (PARTITION BY machine_id, frame_length ORDER BY ts)
  )
SELECT packet_id, ts
FROM neighbours
WHERE packet_id IS NOT NULL AND packet_before IS NULL AND packet_behind IS NULL AND ts IS NOT NULL;

-- Packets that arrived with bytes, by headers, and when there are none by length and time: (id, ucpu, ts, send_ts,
-- sender_utid, owner_upid).
CREATE PERFETTO TABLE _machine_network_arrivals AS
WITH
  exact AS (
    SELECT
      s.id,
      r.ucpu,
      r.ts,
      s.ts AS send_ts,
      iif(coalesce(st.is_idle, 0), so.utid, s.utid) AS sender_utid,
      ro.upid AS owner_upid
    FROM network_packet AS s
    JOIN network_packet AS r ON r.id = s.peer_id
    JOIN thread AS st ON st.utid = s.utid
    LEFT JOIN _machine_network_owner AS so
      ON so.machine_id = s.machine_id
      AND so.source = s.source AND so.source_port = s.source_port
      AND so.destination = s.destination AND so.destination_port = s.destination_port
    LEFT JOIN _machine_network_owner AS ro
      ON ro.machine_id = r.machine_id
      AND ro.source = r.destination AND ro.source_port = r.destination_port
      AND ro.destination = r.source AND ro.destination_port = r.source_port
    WHERE s.direction = 'send'
  )
SELECT * FROM exact
UNION ALL
SELECT o.send_id, r.ucpu, r.ts, o.ts, iif(coalesce(t.is_idle, 0), NULL, s.utid), NULL
FROM machine_network_one_way AS o
JOIN ftrace_event AS s ON s.id = o.send_id
JOIN ftrace_event AS r ON r.id = o.receive_id
JOIN thread AS t ON t.utid = s.utid
WHERE NOT EXISTS(SELECT 1 FROM exact);

-- Wakeups that ended a sleep, with the CPU that woke: (state_id, utid, upid, ucpu, ts).
CREATE PERFETTO TABLE _machine_network_wakings AS
SELECT s.id AS state_id, s.utid, t.upid, e.ucpu, e.ts
FROM ftrace_event AS e
JOIN thread_state AS s ON s.ts = e.ts
JOIN thread AS t ON t.utid = s.utid
WHERE
  e.name IN ('sched_waking', 'sched_wakeup', 'sched_wakeup_new')
  AND EXISTS(SELECT 1 FROM _machine_network_arrivals)
  AND s.state = 'R'
  AND coalesce(s.irq_context, 1)
  AND t.tid = extract_arg(e.arg_set_id, 'pid')
  AND t.machine_id = _machine_of_ucpu!(e.ucpu);

-- Who was woken by a packet that arrived: of the wakeups that follow on the CPU that received it, within a millisecond and before
-- that CPU turns to another thread, the first of a thread of the process that the connection belongs to; or the very next
-- event there when nothing is known of the process: (id, state_id, utid, wake_ts).
CREATE PERFETTO TABLE _machine_network_readers AS
WITH
  events AS (
    SELECT ucpu, ts, 0 AS wakes, 0 AS switches, id, owner_upid, NULL AS utid, NULL AS upid FROM _machine_network_arrivals
    UNION ALL
    SELECT ucpu, ts, 1, 0, state_id, NULL, utid, upid FROM _machine_network_wakings
    UNION ALL
    SELECT ucpu, ts, 0, 1, NULL, NULL, NULL, NULL FROM sched WHERE EXISTS(SELECT 1 FROM _machine_network_arrivals)
  ),
  numbered AS (
    SELECT
      *,
      sum(wakes) OVER one AS wake,
      sum(switches) OVER one AS stretch,
      lead(wakes) OVER (PARTITION BY ucpu ORDER BY ts, wakes, switches) AS next_wakes
    FROM events
    WINDOW one AS (PARTITION BY ucpu ORDER BY ts, wakes, switches ROWS UNBOUNDED PRECEDING)
  ),
  candidates AS (
    SELECT
      a.id,
      w.id AS state_id,
      w.utid,
      w.ts AS wake_ts,
      row_number() OVER (PARTITION BY a.id ORDER BY w.wake) AS place
    FROM numbered AS a
    JOIN (SELECT 1 AS ahead UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4) AS k
    JOIN numbered AS w ON w.ucpu = a.ucpu AND w.wake = a.wake + k.ahead
    WHERE
      a.id IS NOT NULL
      AND NOT a.wakes
      AND w.wakes
      AND w.stretch = a.stretch
      AND w.ts - a.ts <= 1000000
      AND iif(a.owner_upid IS NULL, k.ahead = 1 AND a.next_wakes, a.owner_upid = w.upid)
  )
-- of several packets in front of one wakeup, the last one completes what was waited for
SELECT max(id) AS id, state_id, utid, wake_ts
FROM candidates
WHERE place = 1
GROUP BY state_id, utid, wake_ts;

-- Messages: the bytes of a packet from when the kernel took them for sending until the last of them was received on another
-- machine, and until the thread that waited for them runs. Times between machines hold what their clocks are apart
-- (clock_error_ns()).
CREATE PERFETTO TABLE machine_network_messages(
  -- Row of network_packet: sent. A flow leads from its slice to that of what was received.
  id JOINID(network_packet.id),
  -- Row of network_packet: received, with the last byte.
  receive_id JOINID(network_packet.id),
  -- When it was sent.
  ts TIMESTAMP,
  -- Until it was received.
  dur DURATION,
  -- Who sent it.
  from_machine_id JOINID(machine.id),
  -- Who received it.
  to_machine_id JOINID(machine.id),
  -- Address and port it comes from.
  source STRING,
  -- Address and port it goes to.
  destination STRING,
  -- Bytes that it carries.
  length LONG,
  -- The thread that sent it: the one on the CPU, or that sends on this connection when the CPU was idle.
  sender_utid JOINID(thread.id),
  -- Until the driver had taken it (needs net/net_dev_xmit); NULL when unknown.
  queue_dur DURATION,
  -- From there until it was received; from ts when queue_dur is unknown.
  wire_dur DURATION,
  -- The thread that it woke (needs sched/sched_waking); NULL: none slept for it, or another packet woke it.
  reader_utid JOINID(thread.id),
  -- From when it was received until that wakeup.
  wakeup_dur DURATION,
  -- From the wakeup until the thread ran; NULL when it did not.
  runnable_dur DURATION
) AS
SELECT
  s.id,
  r.id AS receive_id,
  s.ts,
  r.ts - s.ts AS dur,
  s.machine_id AS from_machine_id,
  r.machine_id AS to_machine_id,
  s.source || ':' || s.source_port AS source,
  s.destination || ':' || s.destination_port AS destination,
  s.length,
  a.sender_utid,
  x.ts - s.ts AS queue_dur,
  r.ts - coalesce(x.ts, s.ts) AS wire_dur,
  w.utid AS reader_utid,
  w.wake_ts - r.ts AS wakeup_dur,
  iif(state.dur >= 0, state.dur, NULL) AS runnable_dur
FROM network_packet AS s
JOIN network_packet AS r ON r.id = s.peer_id
LEFT JOIN _machine_network_arrivals AS a ON a.id = s.id
LEFT JOIN _machine_network_xmit AS x ON x.packet_id = s.id
LEFT JOIN _machine_network_readers AS w ON w.id = s.id
LEFT JOIN thread_state AS state ON state.id = w.state_id
WHERE s.direction = 'send'
ORDER BY s.id;

-- There and back: a packet to another machine and the next one from there. The time between, less what the other machine
-- took, does not depend on the clocks being right.
CREATE PERFETTO TABLE machine_network_round_trips(
  -- When the first packet was sent.
  ts TIMESTAMP,
  -- Until the answer was received.
  dur DURATION,
  -- Who asked.
  machine_id JOINID(machine.id),
  -- Who answered.
  peer_machine_id JOINID(machine.id),
  -- Time that the answer took to be made, on the peer's own clock.
  peer_dur DURATION,
  -- What the network took, both ways together.
  network_dur DURATION
) AS
SELECT
  a.ts,
  b.ts + b.one_way_dur - a.ts AS dur,
  a.from_machine_id AS machine_id,
  a.to_machine_id AS peer_machine_id,
  b.ts - (a.ts + a.one_way_dur) AS peer_dur,
  a.one_way_dur + b.one_way_dur AS network_dur
FROM machine_network_one_way AS a
JOIN machine_network_one_way AS b
  ON b.send_id = (
    SELECT x.send_id
    FROM machine_network_one_way AS x
    WHERE
      x.from_machine_id = a.to_machine_id
      AND x.to_machine_id = a.from_machine_id
      AND x.ts >= a.ts + a.one_way_dur
    ORDER BY x.ts
    LIMIT 1
  )
ORDER BY a.ts;
