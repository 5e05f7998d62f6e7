-- What calls between processes spent their time on.

INCLUDE PERFETTO MODULE android.binder;
INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE slices.flat_slices;

-- A slice that explains a delay, by its name; NULL when it does not.
CREATE PERFETTO FUNCTION _binder_reason_of_slice(
  name STRING
)
RETURNS STRING AS
SELECT
  CASE
    WHEN $name = 'mm_vmscan_direct_reclaim' THEN 'kernel_memory_reclaim'
    WHEN $name GLOB 'GC: Wait For Completion*' THEN 'art_gc_wait'
    WHEN $name GLOB 'Lock contention on*' THEN 'art_lock_contention'
    WHEN $name GLOB 'monitor contention*' THEN 'monitor_contention'
    WHEN $name = 'binder transaction' THEN 'binder'
    WHEN $name GLOB 'waitForSurfaceFrame*' OR $name GLOB 'Contending for pthread mutex' THEN 'mutex_contention'
  END;

-- The pieces of each call: the deepest slice that explains the delay, or the state of the thread.
CREATE PERFETTO TABLE _binder_pieces AS
WITH
  states AS (
    SELECT
      row_number() OVER () AS id,
      s.ts,
      s.dur,
      s.thread_state_type,
      s.binder_txn_id,
      b.binder_reply_id,
      iif(s.thread_state_type = 'binder_txn', b.client_utid, b.server_utid) AS utid,
      iif(s.state = 'D' AND s.io_wait, 'IO', s.state) AS state
    FROM _binder_thread_states AS s
    JOIN android_binder_txns AS b USING (binder_txn_id)
  ),
  inside AS (
    SELECT row_number() OVER () AS id, f.ts, f.dur, t.utid, _binder_reason_of_slice(f.name) AS reason, f.slice_id
    FROM _slice_flattened AS f
    JOIN thread_track AS t ON t.id = f.track_id
    WHERE _binder_reason_of_slice(f.name) IS NOT NULL AND f.dur > 0
  ),
  explained AS (
    SELECT i.id_0 AS id, i.ts, i.dur, n.reason
    FROM _interval_intersect!(((SELECT * FROM states), (SELECT * FROM inside)), (utid)) AS i
    JOIN inside AS n ON n.id = i.id_1
    JOIN states AS s ON s.id = i.id_0
    -- the call itself explains nothing
    WHERE n.slice_id NOT IN (s.binder_txn_id, s.binder_reply_id) AND i.dur > 0
  ),
  -- what is left of a state between the pieces that are explained
  edges AS (
    SELECT s.id, s.ts AS ts, e.ts AS until, 0 AS rank
    FROM states AS s
    JOIN (SELECT id, min(ts) AS ts FROM explained GROUP BY id) AS e USING (id)
    UNION ALL
    SELECT e.id, e.ts + e.dur, lead(e.ts, 1, s.ts + s.dur) OVER (PARTITION BY e.id ORDER BY e.ts), 1
    FROM explained AS e
    JOIN states AS s USING (id)
  )
SELECT s.binder_txn_id, s.binder_reply_id, s.thread_state_type, e.ts, e.dur, e.reason
FROM explained AS e
JOIN states AS s USING (id)
UNION ALL
SELECT s.binder_txn_id, s.binder_reply_id, s.thread_state_type, e.ts, e.until - e.ts, s.state
FROM edges AS e
JOIN states AS s USING (id)
WHERE e.until > e.ts
UNION ALL
SELECT s.binder_txn_id, s.binder_reply_id, s.thread_state_type, s.ts, s.dur, s.state
FROM states AS s
WHERE s.id NOT IN (SELECT id FROM explained);

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
SELECT binder_txn_id, binder_reply_id, ts, dur, reason
FROM _binder_pieces
WHERE thread_state_type = 'binder_reply'
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
SELECT binder_txn_id, binder_reply_id, ts, dur, reason
FROM _binder_pieces
WHERE thread_state_type = 'binder_txn'
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
  binder_txn_id,
  binder_reply_id,
  ts,
  dur,
  server_reason,
  client_reason,
  coalesce(server_reason, client_reason) AS reason,
  iif(server_reason IS NULL, 'client', 'server') AS reason_type
FROM _binder_client_server_breakdown_sp
WHERE dur > 0;
