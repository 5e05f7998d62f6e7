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

-- The requests …
CREATE PERFETTO TABLE _bind_dispatch AS
SELECT m.id, m.ts, m.dur, m.name, m.bind_seq, t.tid, t.name AS thread_name, p.pid, p.upid, m.utid, p.name AS process_name
FROM _service_bind_marks AS m
JOIN thread AS t USING (utid)
JOIN process AS p USING (upid)
WHERE m.is_request;

-- … and what receives them.
CREATE PERFETTO TABLE _bind_receive AS
SELECT
  m.id,
  m.ts,
  m.dur,
  m.bind_seq,
  regexp_extract(m.name, 'token=ServiceRecord\{([^ ]*)') AS token,
  regexp_extract(m.name, 'act=([^ ]*)') AS act,
  regexp_extract(m.name, 'cmp=([^ }]*)') AS cmp,
  regexp_extract(m.name, 'flg=([^ }]*)') AS flg,
  t.tid,
  t.name AS thread_name,
  p.pid,
  p.upid,
  m.utid,
  p.name AS process_name
FROM _service_bind_marks AS m
JOIN thread AS t USING (utid)
JOIN process AS p USING (upid)
WHERE NOT m.is_request;

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
  _service_oom_score(c.upid, c.ts) AS client_oom_score,
  c.process_name AS client_process,
  c.thread_name AS client_thread,
  c.pid AS client_pid,
  c.tid AS client_tid,
  c.upid AS client_upid,
  c.utid AS client_utid,
  c.ts AS client_ts,
  c.dur AS client_dur,
  _service_oom_score(s.upid, s.ts) AS server_oom_score,
  s.process_name AS server_process,
  s.thread_name AS server_thread,
  s.pid AS server_pid,
  s.tid AS server_tid,
  s.upid AS server_upid,
  s.utid AS server_utid,
  s.ts AS server_ts,
  s.dur AS server_dur,
  s.token,
  s.act,
  s.cmp,
  s.flg,
  s.bind_seq
FROM _bind_receive AS s
JOIN _bind_dispatch AS c ON c.bind_seq = s.bind_seq AND c.ts <= s.ts
GROUP BY s.id
HAVING c.ts = max(c.ts);
