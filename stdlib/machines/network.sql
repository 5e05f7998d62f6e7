-- Packets as the machines of the trace saw them: what one sends, another receives a little later.
--
-- Needs the ftrace events net/net_dev_xmit (or net_dev_queue) on the sender and net/netif_receive_skb on the receiver.
-- Packets are matched by length and order, which holds on a link that carries little else; use the importer's
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
  -- Bytes.
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
    ucpu / 4096 AS machine_id,
    iif(name = 'net_dev_xmit', 'send', 'receive') AS direction,
    extract_arg(arg_set_id, 'name') AS device,
    extract_arg(arg_set_id, 'len') AS length,
    utid
  FROM ftrace_event
  WHERE name IN ('net_dev_xmit', 'netif_receive_skb')
)
WHERE device != 'lo';

-- Pairs of a packet sent by one machine and received by another: the first one of its length that came after it within a
-- second. one_way_dur also holds what the clocks are apart.
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
  -- Bytes.
  length LONG
) AS
SELECT
  s.id AS send_id,
  r.id AS receive_id,
  s.ts,
  r.ts - s.ts AS one_way_dur,
  s.machine_id AS from_machine_id,
  r.machine_id AS to_machine_id,
  s.length
FROM machine_network_packets AS s
JOIN machine_network_packets AS r
  ON r.id = (
    SELECT x.id
    FROM machine_network_packets AS x
    WHERE
      x.direction = 'receive'
      AND x.machine_id != s.machine_id
      -- the link header is gone from what is received
      AND x.length IN (s.length, s.length - 14)
      AND x.ts BETWEEN s.ts AND s.ts + 1000000000
    ORDER BY x.ts
    LIMIT 1
  )
WHERE s.direction = 'send'
ORDER BY s.ts;

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
