-- Services of applications, from the request to the call that answers it.

INCLUDE PERFETTO MODULE android.binder;
INCLUDE PERFETTO MODULE graphs.search;
INCLUDE PERFETTO MODULE slices.with_context;

-- The requests: instants "requestServiceBinding: bindSeq=N …" with the call right behind them: (id, ts, dur, utid, bind_seq), id being
-- that of the call.
CREATE PERFETTO TABLE _bind_dispatch AS
SELECT c.id, c.ts, c.dur, r.utid, cast_int!(str_split(str_split(r.name, 'bindSeq=', 1), ' ', 0)) AS bind_seq
FROM graph_next_sibling!((
  SELECT id AS node_id, parent_id AS node_parent_id, ts AS sort_key FROM slice WHERE dur = 0
)) AS g
JOIN thread_slice AS r ON r.id = g.node_id
JOIN slice AS c ON c.id = g.next_node_id
WHERE r.name GLOB 'requestServiceBinding*' AND c.name = 'binder transaction async';

-- What receives them: slices "serviceBind: token=ServiceRecord{… act=… cmp=… flg=… bindSeq=N}".
CREATE PERFETTO TABLE _bind_receive AS
SELECT
  id,
  ts,
  dur,
  track_id,
  replace(str_split(str_split(name, 'token=', 1), ' ', 0), 'ServiceRecord{', '') AS token,
  str_split(str_split(name, 'act=', 1), ' ', 0) AS act,
  str_split(str_split(name, 'cmp=', 1), ' ', 0) AS cmp,
  str_split(str_split(name, 'flg=', 1), ' ', 0) AS flg,
  cast_int!(str_split(str_split(name, 'bindSeq=', 1), '}', 0)) AS bind_seq
FROM slice
WHERE name GLOB 'serviceBind:*';

-- Each request with its answer. The system server, which passes requests on, is asked by a call itself: then that one's client counts.
CREATE PERFETTO TABLE android_service_bindings(
  -- Readiness of the client to be ended, when it called.
  client_oom_score LONG,
  -- Name of the client's process.
  client_process STRING,
  -- Name of the client's thread.
  client_thread STRING,
  -- The kernel's number of the client's process.
  client_pid LONG,
  -- The kernel's number of the client's thread.
  client_tid LONG,
  -- The client: row of process.
  client_upid JOINID(process.id),
  -- The client's thread: row of thread.
  client_utid JOINID(thread.id),
  -- Start of the client's slice.
  client_ts TIMESTAMP,
  -- Length of the client's slice.
  client_dur DURATION,
  -- Readiness of the server to be ended, when it answered.
  server_oom_score LONG,
  -- Name of the server's process.
  server_process STRING,
  -- Name of the server's thread.
  server_thread STRING,
  -- The kernel's number of the server's process.
  server_pid LONG,
  -- The kernel's number of the server's thread.
  server_tid LONG,
  -- The server: row of process.
  server_upid JOINID(process.id),
  -- The server's thread: row of thread.
  server_utid JOINID(thread.id),
  -- Start of the server's slice.
  server_ts TIMESTAMP,
  -- Length of the server's slice.
  server_dur DURATION,
  -- Number of the binding.
  token STRING,
  -- Action of the intent.
  act STRING,
  -- Component of the intent.
  cmp STRING,
  -- Flags of the intent.
  flg STRING,
  -- Number of the call in the sequence of bindings.
  bind_seq LONG
) AS
SELECT
  coalesce(c.client_oom_score, s.client_oom_score) AS client_oom_score,
  coalesce(c.client_process, s.client_process) AS client_process,
  coalesce(c.client_thread, s.client_thread) AS client_thread,
  coalesce(c.client_pid, s.client_pid) AS client_pid,
  coalesce(c.client_tid, s.client_tid) AS client_tid,
  coalesce(c.client_upid, s.client_upid) AS client_upid,
  coalesce(c.client_utid, s.client_utid) AS client_utid,
  coalesce(c.client_ts, s.client_ts) AS client_ts,
  coalesce(c.client_dur, s.client_dur) AS client_dur,
  s.server_oom_score,
  s.server_process,
  s.server_thread,
  s.server_pid,
  s.server_tid,
  s.server_upid,
  s.server_utid,
  r.ts AS server_ts,
  r.dur AS server_dur,
  r.token,
  r.act,
  r.cmp,
  r.flg,
  r.bind_seq
FROM _bind_dispatch AS d
JOIN _bind_receive AS r USING (bind_seq)
LEFT JOIN android_binder_txns AS s ON s.binder_txn_id = d.id
LEFT JOIN ancestor_slice(d.id) AS a ON a.depth = 0
LEFT JOIN android_binder_txns AS c ON c.server_ts = a.ts AND c.server_utid = d.utid;
