-- Calls between processes: the client's slice, the server's answer, and the name that the code in between wrote.

INCLUDE PERFETTO MODULE android.oom_adjuster;
INCLUDE PERFETTO MODULE android.process_metadata;
INCLUDE PERFETTO MODULE android.suspend;
INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE slices.with_context;

-- How many slices of each name the processes of each name have.
CREATE PERFETTO VIEW android_binder_metrics_by_process(
  -- Name of the process.
  process_name STRING,
  -- The kernel's number of the first such process.
  pid LONG,
  -- Name of the slice.
  slice_name STRING,
  -- How many slices.
  event_count LONG
) AS
SELECT process_name, pid, name AS slice_name, count() AS event_count
FROM thread_slice
WHERE name GLOB 'binder*' AND upid IS NOT NULL
GROUP BY process_name, name;

-- True for the slices that servers name an interface with: "AIDL::java::IFoo::bar::server", "AIDL::cpp::IFoo::bar::cppServer".
CREATE PERFETTO FUNCTION _binder_is_interface(
  name STRING
)
RETURNS BOOL AS
SELECT $name GLOB 'AIDL::*[sS]erver' OR $name GLOB 'HIDL::*server';

-- Calls that wait, with the first name of an interface that the server wrote inside its answer.
CREATE PERFETTO TABLE _binder_sync_txns AS
SELECT
  (
    SELECT i.id
    FROM slice AS i
    WHERE i.parent_id = r.id AND _binder_is_interface(i.name)
    ORDER BY i.name, i.id
    LIMIT 1
  ) AS interface_id,
  c.id AS binder_txn_id,
  r.id AS binder_reply_id,
  1 AS is_sync
FROM slice AS c
JOIN flow AS f ON f.slice_out = c.id
JOIN slice AS r ON r.id = f.slice_in
WHERE c.name = 'binder transaction' AND c.dur >= r.dur AND r.dur >= 0;

-- Calls that do not. What the server does stands behind the slice that receives.
CREATE PERFETTO TABLE _binder_async_txns AS
WITH
  server AS (
    SELECT
      id,
      ts,
      name,
      lead(id) OVER (PARTITION BY track_id ORDER BY ts) AS next_id,
      lead(name) OVER (PARTITION BY track_id ORDER BY ts) AS next_name
    FROM slice
    WHERE name = 'binder async rcv' OR _binder_is_interface(name)
  )
SELECT
  iif(r.next_name = 'binder async rcv', NULL, r.next_id) AS interface_id,
  c.id AS binder_txn_id,
  r.id AS binder_reply_id,
  0 AS is_sync
FROM slice AS c
JOIN flow AS f ON f.slice_out = c.id
JOIN server AS r ON r.id = f.slice_in
WHERE c.name = 'binder transaction async' AND r.name = 'binder async rcv';

CREATE PERFETTO FUNCTION _binder_oom_score(
  upid LONG,
  ts TIMESTAMP
)
RETURNS LONG AS
SELECT score FROM _oom_adjuster_intervals WHERE upid = $upid AND $ts >= ts AND $ts < ts + dur LIMIT 1;

-- Every call with both ends.
CREATE PERFETTO TABLE android_binder_txns(
  -- Name that the generated code gave the call; NULL: none was recorded.
  aidl_name STRING,
  -- Interface of the call.
  interface STRING,
  -- Method of the call.
  method_name STRING,
  -- Start of the slice with that name.
  aidl_ts TIMESTAMP,
  -- Length of the slice with that name.
  aidl_dur DURATION,
  -- The client's slice of the call: row of slice.
  binder_txn_id JOINID(slice.id),
  -- Name of the client's process.
  client_process STRING,
  -- Name of the client's thread.
  client_thread STRING,
  -- The client: row of process.
  client_upid JOINID(process.id),
  -- The client's thread: row of thread.
  client_utid JOINID(thread.id),
  -- The kernel's number of the client's thread.
  client_tid LONG,
  -- The kernel's number of the client's process.
  client_pid LONG,
  -- Is the client's thread the first of its process?
  is_main_thread BOOL,
  -- Start of the client's slice.
  client_ts TIMESTAMP,
  -- Length of the client's slice.
  client_dur DURATION,
  -- The server's slice that answers: row of slice.
  binder_reply_id JOINID(slice.id),
  -- Name of the server's process.
  server_process STRING,
  -- Name of the server's thread.
  server_thread STRING,
  -- The server: row of process.
  server_upid JOINID(process.id),
  -- The server's thread: row of thread.
  server_utid JOINID(thread.id),
  -- The kernel's number of the server's thread.
  server_tid LONG,
  -- The kernel's number of the server's process.
  server_pid LONG,
  -- Start of the server's slice.
  server_ts TIMESTAMP,
  -- Length of the server's slice.
  server_dur DURATION,
  -- Readiness of the client to be ended, when it called.
  client_oom_score LONG,
  -- Readiness of the server to be ended, when it answered.
  server_oom_score LONG,
  -- Does the client wait for the answer?
  is_sync BOOL,
  -- Length of the client's slice, without the time asleep.
  client_monotonic_dur DURATION,
  -- Length of the server's slice, without the time asleep.
  server_monotonic_dur DURATION,
  -- Version of the client's package.
  client_package_version_code LONG,
  -- Version of the server's package.
  server_package_version_code LONG,
  -- Can the client's package be debugged?
  is_client_package_debuggable BOOL,
  -- Can the server's package be debugged?
  is_server_package_debuggable BOOL
) AS
WITH
  calls AS (
    SELECT * FROM _binder_sync_txns
    UNION ALL
    SELECT * FROM _binder_async_txns
  )
SELECT
  str_split(i.name, '::', 2) AS interface,
  str_split(i.name, '::', 3) AS method_name,
  i.name AS aidl_name,
  i.ts AS aidl_ts,
  i.dur AS aidl_dur,
  x.binder_txn_id,
  c.process_name AS client_process,
  c.thread_name AS client_thread,
  c.upid AS client_upid,
  c.utid AS client_utid,
  c.tid AS client_tid,
  c.pid AS client_pid,
  c.is_main_thread,
  c.ts AS client_ts,
  c.dur AS client_dur,
  x.binder_reply_id,
  s.process_name AS server_process,
  s.thread_name AS server_thread,
  s.upid AS server_upid,
  s.utid AS server_utid,
  s.tid AS server_tid,
  s.pid AS server_pid,
  s.ts AS server_ts,
  s.dur AS server_dur,
  _binder_oom_score(c.upid, c.ts) AS client_oom_score,
  _binder_oom_score(s.upid, s.ts) AS server_oom_score,
  x.is_sync,
  _extract_duration_without_suspend(c.ts, c.dur) AS client_monotonic_dur,
  _extract_duration_without_suspend(s.ts, s.dur) AS server_monotonic_dur,
  cm.version_code AS client_package_version_code,
  sm.version_code AS server_package_version_code,
  cm.debuggable AS is_client_package_debuggable,
  sm.debuggable AS is_server_package_debuggable
FROM calls AS x
JOIN thread_slice AS c ON c.id = x.binder_txn_id AND c.upid IS NOT NULL
JOIN thread_slice AS s ON s.id = x.binder_reply_id AND s.upid IS NOT NULL
LEFT JOIN slice AS i ON i.id = x.interface_id
LEFT JOIN android_process_metadata AS cm ON cm.upid = c.upid
LEFT JOIN android_process_metadata AS sm ON sm.upid = s.upid
ORDER BY x.binder_txn_id;

-- States of the threads at both ends of the calls that wait: (binder_txn_id, ends, thread_state_type, state,
-- blocked_function, dur).
CREATE PERFETTO TABLE _binder_thread_states AS
WITH
  ends AS (
    SELECT 2 * binder_txn_id AS id, client_ts AS ts, client_dur AS dur, client_utid AS utid
    FROM android_binder_txns
    WHERE is_sync AND client_dur > 0
    UNION ALL
    SELECT 2 * binder_txn_id + 1, server_ts, server_dur, server_utid
    FROM android_binder_txns
    WHERE is_sync AND server_dur > 0
  )
SELECT
  i.id_0 / 2 AS binder_txn_id,
  iif(i.id_0 % 2, 'binder_reply', 'binder_txn') AS thread_state_type,
  t.state,
  t.io_wait,
  t.blocked_function,
  t.id AS thread_state_id,
  i.ts,
  i.dur
FROM _interval_intersect!((
  ends,
  (SELECT id, ts, iif(dur < 0, trace_end() - ts, dur) AS dur, utid FROM thread_state)
), (utid)) AS i
JOIN thread_state AS t ON t.id = i.id_1
WHERE i.dur > 0;

-- How long the threads of each call were in each state.
CREATE PERFETTO VIEW android_sync_binder_thread_state_by_txn(
  -- The client's slice of the call: row of slice.
  binder_txn_id LONG,
  -- Start of the client's slice.
  client_ts TIMESTAMP,
  -- The kernel's number of the client's thread.
  client_tid LONG,
  -- The server's slice that answers: row of slice.
  binder_reply_id LONG,
  -- Start of the server's slice.
  server_ts TIMESTAMP,
  -- The kernel's number of the server's thread.
  server_tid LONG,
  -- Whose thread: binder_txn is the client's, binder_reply the server's.
  thread_state_type STRING,
  -- State of the thread.
  thread_state STRING,
  -- Time in that state.
  thread_state_dur DURATION,
  -- How many spans in that state.
  thread_state_count LONG
) AS
SELECT
  b.binder_txn_id,
  b.client_ts,
  b.client_tid,
  b.binder_reply_id,
  b.server_ts,
  b.server_tid,
  s.thread_state_type,
  s.state AS thread_state,
  sum(s.dur) AS thread_state_dur,
  count() AS thread_state_count
FROM _binder_thread_states AS s
JOIN android_binder_txns AS b USING (binder_txn_id)
GROUP BY b.binder_txn_id, b.binder_reply_id, s.thread_state_type, s.state
ORDER BY s.thread_state_type DESC, b.binder_txn_id, b.binder_reply_id, s.state;

-- How long they waited in which function of the kernel.
CREATE PERFETTO VIEW android_sync_binder_blocked_functions_by_txn(
  -- The client's slice of the call: row of slice.
  binder_txn_id LONG,
  -- Start of the client's slice.
  client_ts TIMESTAMP,
  -- The kernel's number of the client's thread.
  client_tid LONG,
  -- The server's slice that answers: row of slice.
  binder_reply_id LONG,
  -- Start of the server's slice.
  server_ts TIMESTAMP,
  -- The kernel's number of the server's thread.
  server_tid LONG,
  -- Whose thread: binder_txn is the client's, binder_reply the server's.
  thread_state_type STRING,
  -- Kernel function that the thread waited in.
  blocked_function STRING,
  -- Time waited in it.
  blocked_function_dur DURATION,
  -- How often it waited in it.
  blocked_function_count LONG
) AS
SELECT
  b.binder_txn_id,
  b.client_ts,
  b.client_tid,
  b.binder_reply_id,
  b.server_ts,
  b.server_tid,
  s.thread_state_type,
  s.blocked_function,
  sum(s.dur) AS blocked_function_dur,
  count() AS blocked_function_count
FROM _binder_thread_states AS s
JOIN android_binder_txns AS b USING (binder_txn_id)
WHERE s.blocked_function IS NOT NULL
GROUP BY b.binder_txn_id, b.binder_reply_id, s.thread_state_type, s.blocked_function
ORDER BY s.thread_state_type DESC, b.binder_txn_id, b.binder_reply_id, s.blocked_function;

-- A part of the name of an interface, counted from the interface itself: "HIDL::IFoo::bar::server" does not tell the language.
CREATE PERFETTO FUNCTION _binder_name_part(
  aidl_name STRING,
  part LONG
)
RETURNS STRING AS
SELECT str_split($aidl_name, '::', iif($aidl_name GLOB 'AIDL*', 2, 1) + $part);

-- The calls that a process made, as a profile of the time that servers took: thread, server, interface, method. All
-- processes for NULL.
CREATE PERFETTO FUNCTION android_binder_outgoing_graph(
  -- The process: row of process.
  upid JOINID(process.id)
)
RETURNS TABLE(
  -- The graph as a profile in the format of pprof.
  pprof BYTES
) AS
SELECT
  experimental_profile(
    cat_stacks(client_thread, server_process, _binder_name_part(aidl_name, 0), _binder_name_part(aidl_name, 1)),
    'duration',
    'ns',
    server_dur
  ) AS pprof
FROM android_binder_txns
WHERE $upid IS NULL OR client_upid = $upid;

-- The calls that a process served: client, interface, method.
CREATE PERFETTO FUNCTION android_binder_incoming_graph(
  -- The process: row of process.
  upid JOINID(process.id)
)
RETURNS TABLE(
  -- The graph as a profile in the format of pprof.
  pprof BYTES
) AS
SELECT
  experimental_profile(
    cat_stacks(client_process, _binder_name_part(aidl_name, 0), _binder_name_part(aidl_name, 1)),
    'duration',
    'ns',
    server_dur
  ) AS pprof
FROM android_binder_txns
WHERE $upid IS NULL OR server_upid = $upid;

-- All calls between processes whose scores lie in the given bounds: client, server.
CREATE PERFETTO FUNCTION android_binder_graph(
  -- Leave out clients with a lower score.
  min_client_oom_score LONG,
  -- Leave out clients with a higher score.
  max_client_oom_score LONG,
  -- Leave out servers with a lower score.
  min_server_oom_score LONG,
  -- Leave out servers with a higher score.
  max_server_oom_score LONG
)
RETURNS TABLE(
  -- The graph as a profile in the format of pprof.
  pprof BYTES
) AS
SELECT experimental_profile(cat_stacks(client_process, server_process), 'duration', 'ns', server_dur) AS pprof
FROM android_binder_txns
WHERE client_oom_score BETWEEN $min_client_oom_score AND $max_client_oom_score
  AND server_oom_score BETWEEN $min_server_oom_score AND $max_server_oom_score;

-- The same in parts, for queries that look at one kind of call.

-- Slices of clients that call, with their threads.
CREATE PERFETTO VIEW _binder_txn AS
SELECT id AS binder_txn_id, process_name, thread_name, utid, tid, pid, upid, is_main_thread, ts, dur
FROM thread_slice
WHERE name = 'binder transaction';

-- Slices of servers that answer.
CREATE PERFETTO VIEW _binder_reply AS
SELECT id AS binder_reply_id, process_name, thread_name, utid, tid, pid, upid, ts, dur
FROM thread_slice
WHERE name = 'binder reply';

-- Calls that wait, with their answers and the name that the code in between wrote.
CREATE PERFETTO TABLE _binder_txn_merged AS
SELECT
  i.name AS aidl_name,
  i.ts AS aidl_ts,
  i.dur AS aidl_dur,
  x.binder_txn_id,
  x.binder_reply_id
FROM _binder_sync_txns AS x
LEFT JOIN slice AS i ON i.id = x.interface_id;

-- Calls that do not wait, and what received them.
CREATE PERFETTO TABLE _binder_async_txn_raw AS
SELECT binder_txn_id, binder_reply_id, interface_id FROM _binder_async_txns;

-- The same with the name that the code in between wrote.
CREATE PERFETTO TABLE _binder_async_txn AS
SELECT i.name AS aidl_name, i.ts AS aidl_ts, i.dur AS aidl_dur, x.binder_txn_id, x.binder_reply_id
FROM _binder_async_txn_raw AS x
LEFT JOIN slice AS i ON i.id = x.interface_id;

-- Slices of servers that receive calls without an answer, and the named slice behind each.
CREATE PERFETTO TABLE _async_binder_reply AS
SELECT r.id AS binder_reply_id, r.ts, r.dur, r.track_id, i.id AS aidl_id, i.name AS aidl_name, i.ts AS aidl_ts, i.dur AS aidl_dur
FROM _binder_async_txn_raw AS x
JOIN slice AS r ON r.id = x.binder_reply_id
LEFT JOIN slice AS i ON i.id = x.interface_id;

-- Scores of readiness to be ended, one row a span.
CREATE PERFETTO TABLE _oom_score AS
SELECT upid, ts, dur, score FROM _oom_adjuster_intervals;

-- Both ends of each call that waits.
CREATE PERFETTO VIEW _sync_binder_metrics_by_txn AS
SELECT * FROM android_binder_txns WHERE is_sync;

-- Both ends of each call that does not.
CREATE PERFETTO VIEW _async_binder_metrics_by_txn AS
SELECT * FROM android_binder_txns WHERE NOT is_sync;
