-- Services of applications, from the request to the call that answers it.

INCLUDE PERFETTO MODULE android.oom_adjuster;
INCLUDE PERFETTO MODULE slices.with_context;

-- "requestServiceBinding: bindSeq=N …" in the client and "serviceBind: token=ServiceRecord{…} act=… cmp=… flg=… bindSeq=N}" in
-- the server.
CREATE PERFETTO TABLE _service_bind_marks AS
SELECT
  id,
  ts,
  dur,
  name,
  utid,
  name GLOB 'requestServiceBinding*' AS is_request,
  cast_int!(regexp_extract(name, 'bindSeq=([0-9]+)')) AS bind_seq
FROM thread_slice
WHERE name GLOB 'requestServiceBinding*' OR name GLOB 'serviceBind:*';

CREATE PERFETTO FUNCTION _service_oom_score(
  upid LONG,
  ts TIMESTAMP
)
RETURNS LONG AS
SELECT score FROM _oom_adjuster_intervals WHERE upid = $upid AND $ts >= ts AND $ts < ts + dur LIMIT 1;

-- Each request with its answer.
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
  _service_oom_score(cp.upid, c.ts) AS client_oom_score,
  cp.name AS client_process,
  ct.name AS client_thread,
  cp.pid AS client_pid,
  ct.tid AS client_tid,
  cp.upid AS client_upid,
  c.utid AS client_utid,
  c.ts AS client_ts,
  c.dur AS client_dur,
  _service_oom_score(sp.upid, s.ts) AS server_oom_score,
  sp.name AS server_process,
  st.name AS server_thread,
  sp.pid AS server_pid,
  st.tid AS server_tid,
  sp.upid AS server_upid,
  s.utid AS server_utid,
  s.ts AS server_ts,
  s.dur AS server_dur,
  regexp_extract(s.name, 'token=ServiceRecord\{([^ ]*)') AS token,
  regexp_extract(s.name, 'act=([^ ]*)') AS act,
  regexp_extract(s.name, 'cmp=([^ }]*)') AS cmp,
  regexp_extract(s.name, 'flg=([^ }]*)') AS flg,
  s.bind_seq
FROM _service_bind_marks AS s
JOIN _service_bind_marks AS c ON c.is_request AND c.bind_seq = s.bind_seq AND c.ts <= s.ts
JOIN thread AS ct ON ct.utid = c.utid
JOIN process AS cp ON cp.upid = ct.upid
JOIN thread AS st ON st.utid = s.utid
JOIN process AS sp ON sp.upid = st.upid
WHERE NOT s.is_request
GROUP BY s.id
HAVING c.ts = max(c.ts);
