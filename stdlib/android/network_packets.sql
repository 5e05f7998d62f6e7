-- Packets that a phone sent and received, and the time that its radio was up for them.

-- Packets, or sums of packets of one socket.
CREATE PERFETTO VIEW android_network_packets(
  -- Row of slice.
  id ID,
  -- When the transfer began.
  ts TIMESTAMP,
  -- Duration of the transfer in nanoseconds.
  dur DURATION,
  -- Name of the track.
  track_name STRING,
  -- The package of the socket.
  package_name STRING,
  -- Network interface.
  iface STRING,
  -- Transmitted or received.
  direction STRING,
  -- How many packets.
  packet_count LONG,
  -- Their bytes.
  packet_length LONG,
  -- Protocol above IP.
  packet_transport STRING,
  -- Flags of TCP, as text.
  packet_tcp_flags LONG,
  -- Tag of the socket, as text.
  socket_tag STRING,
  -- The user id of the socket.
  socket_uid LONG,
  -- Port here.
  local_port LONG,
  -- Port there.
  remote_port LONG,
  -- Type of the ICMP message.
  packet_icmp_type LONG,
  -- Code of the ICMP message.
  packet_icmp_code LONG,
  -- Flags of TCP, as bits.
  packet_tcp_flags_int LONG,
  -- Tag of the socket, as a number.
  socket_tag_int LONG
) AS
SELECT
  p.id,
  s.ts,
  s.dur,
  t.name AS track_name,
  s.name AS package_name,
  p.iface,
  p.direction,
  p.packet_count,
  p.packet_length,
  p.packet_transport,
  p.packet_tcp_flags_str AS packet_tcp_flags,
  p.packet_tcp_flags AS packet_tcp_flags_int,
  p.socket_tag_str AS socket_tag,
  p.socket_tag AS socket_tag_int,
  p.socket_uid,
  p.local_port,
  p.remote_port,
  p.packet_icmp_type,
  p.packet_icmp_code
FROM __intrinsic_android_network_packets AS p
JOIN slice AS s USING (id)
JOIN track AS t ON t.id = s.track_id;

CREATE PERFETTO MACRO _network_column(name ColumnName)
RETURNS Expr AS $name;

-- Rows with the number of the group of overlapping ones that they are in: all columns, max_end_so_far (the last end of those
-- before, NULL for the first) and group_id. A group goes on as long as each begins before, or when, all before it have ended.
CREATE PERFETTO MACRO _add_overlap_group_id(
  -- Spans: ts, dur, the columns.
  src TableOrSubquery,
  -- Columns that spans must have in common, in parentheses.
  partition_columns ColumnNameList
)
RETURNS TableOrSubquery AS
(
  SELECT
    *,
    sum(max_end_so_far IS NULL OR ts > max_end_so_far) OVER (
      PARTITION BY __intrinsic_token_apply!(_network_column, $partition_columns)
      ORDER BY ts
    ) AS group_id
  FROM (
    SELECT
      *,
      max(ts + dur) OVER (
        PARTITION BY __intrinsic_token_apply!(_network_column, $partition_columns)
        ORDER BY ts
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS max_end_so_far
    FROM $src
  )
);

-- The spans in which a network was up, if it goes down when nothing has come for a time: (the columns, ts, dur,
-- packet_count, packet_length).
CREATE PERFETTO MACRO android_network_uptime_spans(
  -- Packets: ts, dur, packet_count, packet_length and the columns.
  src TableOrSubquery,
  -- What tells networks apart, in parentheses.
  partition_columns ColumnNameList,
  -- How long it stays up after a packet, in nanoseconds.
  timeout Expr
)
RETURNS TableOrSubquery AS
(
  SELECT
    __intrinsic_token_apply!(_network_column, $partition_columns),
    min(ts) AS ts,
    max(ts + dur) - min(ts) AS dur,
    sum(packet_count) AS packet_count,
    sum(packet_length) AS packet_length
  FROM _add_overlap_group_id!(
    (
      SELECT
        min(ts) AS ts, max(ts + dur) - min(ts) + $timeout AS dur, sum(packet_count) AS packet_count,
        sum(packet_length) AS packet_length
        __intrinsic_token_apply_prefix!(_network_column, $partition_columns)
      FROM $src
      GROUP BY __intrinsic_token_apply!(_network_column, $partition_columns), ts / $timeout
    ),
    $partition_columns
  )
  GROUP BY __intrinsic_token_apply!(_network_column, $partition_columns), group_id
);

-- What packets cost of that time: (id, uptime_cost). Each pays for the time that the network would have been down without it,
-- and those at one time share the time they take by their number of packets.
CREATE PERFETTO MACRO android_network_uptime_cost(
  -- Packets: id, ts, dur, packet_count and the columns.
  src TableOrSubquery,
  -- What tells networks apart, in parentheses.
  partition_columns ColumnNameList,
  -- How long it stays up after a packet, in nanoseconds.
  timeout Expr
)
RETURNS TableOrSubquery AS
(
  SELECT
    id,
    coalesce(max(0, min($timeout, ts - max_end_so_far)), $timeout) + group_dur * packet_count / group_packets AS uptime_cost
  FROM (
    SELECT
      *,
      max(ts + dur) OVER in_group - min(ts) OVER in_group AS group_dur,
      sum(packet_count) OVER in_group AS group_packets
    FROM _add_overlap_group_id!($src, $partition_columns)
    WINDOW in_group AS (PARTITION BY __intrinsic_token_apply!(_network_column, $partition_columns), group_id)
  )
);
