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
  client_oom_score LONG,
  client_process STRING,
  client_thread STRING,
  client_pid LONG,
  client_tid LONG,
  client_upid JOINID(process.id),
  client_utid JOINID(thread.id),
  client_ts TIMESTAMP,
  client_dur DURATION,
  server_oom_score LONG,
  server_process STRING,
  server_thread STRING,
  server_pid LONG,
  server_tid LONG,
  server_upid JOINID(process.id),
  server_utid JOINID(thread.id),
  server_ts TIMESTAMP,
  server_dur DURATION,
  token STRING,
  act STRING,
  cmp STRING,
  flg STRING,
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
