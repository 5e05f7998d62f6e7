-- What calls between processes spent their time on.

INCLUDE PERFETTO MODULE android.binder;
INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE slices.flat_slices;

-- Why a call took the time of a piece, by the deepest slice that says so and by the state of the thread: what slices tell comes
-- first, then waits for a device, then the state. The slices of the call itself explain nothing.
CREATE PERFETTO FUNCTION _binder_reason(
  -- Name of the slice.
  name STRING,
  -- State of the thread.
  state STRING,
  -- Does it wait for a device?
  io_wait LONG,
  -- The client's slice of the call.
  binder_txn_id LONG,
  -- The server's.
  binder_reply_id LONG,
  -- Row of the slice that is named.
  flat_id LONG
)
RETURNS STRING AS
SELECT
  CASE
    WHEN $name = 'mm_vmscan_direct_reclaim' THEN 'kernel_memory_reclaim'
    WHEN $name GLOB 'GC: Wait For*' THEN 'userspace_memory_reclaim'
    WHEN $state = 'S' AND ($name GLOB 'monitor contention*' OR $name GLOB 'Lock contention on a monitor lock*')
      THEN 'monitor_contention'
    WHEN $state = 'S' AND $name GLOB 'Lock contention*' THEN 'art_lock_contention'
    WHEN $state = 'S' AND $name IN ('binder transaction', 'binder reply')
      AND $flat_id NOT IN ($binder_txn_id, $binder_reply_id) THEN 'binder'
    WHEN $state = 'S' AND $name = 'Contending for pthread mutex' THEN 'mutex_contention'
    WHEN $state != 'S' AND $io_wait = 1 THEN 'io'
    ELSE $state
  END;

-- What is deepest at each moment on the tracks that calls are on.
CREATE PERFETTO TABLE _binder_flat_pieces AS
SELECT row_number() OVER (ORDER BY ts) AS id, ts, dur, track_id, utid, slice_id, name
FROM _slice_flattened
WHERE dur > 0 AND utid IN (
  SELECT client_utid FROM android_binder_txns UNION SELECT server_utid FROM android_binder_txns
);

-- Slices below one side of the calls, flattened: (id, ts, dur, utid, flat_id, name, binder_txn_id, binder_reply_id). name
-- is that of the deepest slice, of the side itself where nothing is inside it.
CREATE PERFETTO MACRO _binder_flatten_descendants(
  -- Column of android_binder_txns: the slice of that side.
  id ColumnName,
  -- When it began.
  ts ColumnName,
  -- Its duration.
  dur ColumnName,
  -- What to call it where nothing is inside it.
  slice_name ColumnName
)
RETURNS TableOrSubQuery AS
(
  SELECT
    row_number() OVER (ORDER BY i.ts, b.binder_txn_id) AS id,
    i.ts,
    i.dur,
    f.utid,
    f.slice_id AS flat_id,
    iif(f.slice_id = b.$id, coalesce(b.$slice_name, f.name), f.name) AS name,
    b.binder_txn_id,
    b.binder_reply_id
  FROM _interval_intersect!(
    (
      (
        SELECT c.binder_txn_id AS id, c.$ts AS ts, c.$dur AS dur, s.track_id
        FROM android_binder_txns AS c
        JOIN slice AS s ON s.id = c.$id
        WHERE c.$dur > 0
      ),
      _binder_flat_pieces
    ),
    (track_id)
  ) AS i
  JOIN android_binder_txns AS b ON b.binder_txn_id = i.id_0
  JOIN _binder_flat_pieces AS f ON f.id = i.id_1
  WHERE i.dur > 0
);

-- The clients' sides, by time.
CREATE PERFETTO VIEW _binder_client_view AS
SELECT binder_txn_id AS id, client_ts AS ts, client_dur AS dur, client_utid AS utid, binder_txn_id, binder_reply_id
FROM android_binder_txns
WHERE client_dur > 0
ORDER BY client_ts;

-- The servers' sides, by time.
CREATE PERFETTO VIEW _binder_server_view AS
SELECT binder_reply_id AS id, server_ts AS ts, server_dur AS dur, server_utid AS utid, binder_txn_id, binder_reply_id
FROM android_binder_txns
WHERE server_dur > 0
ORDER BY server_ts;

-- States of threads that lasted and ended.
CREATE PERFETTO VIEW _thread_state_view AS
SELECT id, ts, dur, utid, cpu, state, io_wait
FROM thread_state
WHERE dur > 0
ORDER BY ts;

-- What is deepest on the clients' sides.
CREATE PERFETTO TABLE _binder_client_flat_descendants AS
SELECT * FROM _binder_flatten_descendants!(binder_txn_id, client_ts, client_dur, aidl_name);

-- The same on the servers' sides.
CREATE PERFETTO TABLE _binder_server_flat_descendants AS
SELECT * FROM _binder_flatten_descendants!(binder_reply_id, server_ts, server_dur, aidl_name);

-- The same, cut where the state of the thread changes.
CREATE PERFETTO TABLE _binder_client_flat_descendants_with_thread_state AS
SELECT i.ts, i.dur, f.binder_txn_id, f.binder_reply_id, f.flat_id, f.name, t.state, t.io_wait
FROM _interval_intersect!((_binder_client_flat_descendants, _thread_state_view), (utid)) AS i
JOIN _binder_client_flat_descendants AS f ON f.id = i.id_0
JOIN thread_state AS t ON t.id = i.id_1
WHERE i.dur > 0;

CREATE PERFETTO TABLE _binder_server_flat_descendants_with_thread_state AS
SELECT i.ts, i.dur, f.binder_txn_id, f.binder_reply_id, f.flat_id, f.name, t.state, t.io_wait
FROM _interval_intersect!((_binder_server_flat_descendants, _thread_state_view), (utid)) AS i
JOIN _binder_server_flat_descendants AS f ON f.id = i.id_0
JOIN thread_state AS t ON t.id = i.id_1
WHERE i.dur > 0;

-- On the server's side.
CREATE PERFETTO TABLE android_binder_server_breakdown(
  -- The client's slice of the call: row of slice.
  binder_txn_id JOINID(slice.id),
  -- The server's slice that answers: row of slice.
  binder_reply_id JOINID(slice.id),
  -- When the part of the call began.
  ts TIMESTAMP,
  -- Duration of the part of the call in nanoseconds.
  dur DURATION,
  -- What the server's time went to.
  reason STRING
) AS
SELECT
  binder_txn_id,
  binder_reply_id,
  ts,
  dur,
  _binder_reason(name, state, io_wait, binder_txn_id, binder_reply_id, flat_id) AS reason
FROM _binder_server_flat_descendants_with_thread_state
ORDER BY binder_txn_id, ts;

-- On the client's side.
CREATE PERFETTO TABLE android_binder_client_breakdown(
  -- The client's slice of the call: row of slice.
  binder_txn_id JOINID(slice.id),
  -- The server's slice that answers: row of slice.
  binder_reply_id JOINID(slice.id),
  -- When the part of the call began.
  ts TIMESTAMP,
  -- Duration of the part of the call in nanoseconds.
  dur DURATION,
  -- What the client's time went to.
  reason STRING
) AS
SELECT
  binder_txn_id,
  binder_reply_id,
  ts,
  dur,
  _binder_reason(name, state, io_wait, binder_txn_id, binder_reply_id, flat_id) AS reason
FROM _binder_client_flat_descendants_with_thread_state
ORDER BY binder_txn_id, ts;

CREATE PERFETTO VIEW _binder_client_breakdown_view AS
SELECT binder_txn_id, binder_reply_id, ts, dur, reason AS client_reason
FROM android_binder_client_breakdown;

CREATE PERFETTO VIEW _binder_server_breakdown_view AS
SELECT binder_txn_id, ts, dur, reason AS server_reason
FROM android_binder_server_breakdown;

CREATE VIRTUAL TABLE _binder_client_server_breakdown_sp
USING SPAN_LEFT_JOIN(
  _binder_client_breakdown_view PARTITIONED binder_txn_id,
  _binder_server_breakdown_view PARTITIONED binder_txn_id
);

-- Both: while the server works on the call, its reason counts.
CREATE PERFETTO TABLE android_binder_client_server_breakdown(
  -- The client's slice of the call: row of slice.
  binder_txn_id JOINID(slice.id),
  -- The server's slice that answers: row of slice.
  binder_reply_id JOINID(slice.id),
  -- When the part of the call began.
  ts TIMESTAMP,
  -- Duration of the part of the call in nanoseconds.
  dur DURATION,
  -- What the server's time went to.
  server_reason STRING,
  -- What the client's time went to.
  client_reason STRING,
  -- The server's reason, or the client's where the server has none.
  reason STRING,
  -- Whose reason it is: the client's or the server's.
  reason_type STRING
) AS
SELECT
  ts,
  dur,
  binder_txn_id,
  binder_reply_id,
  client_reason,
  server_reason,
  coalesce(server_reason, client_reason) AS reason,
  iif(server_reason IS NULL, 'client', 'server') AS reason_type
FROM _binder_client_server_breakdown_sp
WHERE dur > 0;
