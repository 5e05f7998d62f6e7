-- Packets as the machines of the trace saw them: what one sends, another receives a little later.
--
-- Needs the ftrace events net/net_dev_xmit (or net_dev_queue) on the sender and net/netif_receive_skb on the receiver.
-- Packets are matched by length and time, which holds on a link that carries little else; use the importer's
-- synchronisation for more.

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
