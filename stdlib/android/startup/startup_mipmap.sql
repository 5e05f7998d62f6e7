-- What the main threads of starting applications did, in steps of 1 ms.

INCLUDE PERFETTO MODULE android.startup.startups;
INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE intervals.mipmap;
INCLUDE PERFETTO MODULE slices.pieces;

-- The starts with their main threads: (id, ts, dur, utid, upid, package, startup_type).
CREATE PERFETTO TABLE _mipmap_startup AS
SELECT s.startup_id AS id, s.ts, s.dur, t.utid, t.upid, s.package, s.startup_type
FROM android_startups AS s
JOIN android_startup_threads AS t USING (startup_id)
WHERE t.is_main_thread
GROUP BY s.startup_id;

-- The innermost slices of their threads: (ts, dur, utid, name, depth).
CREATE PERFETTO TABLE _mipmap_flat_slice AS
SELECT p.ts, p.dur, t.utid, s.name, s.depth
FROM _slice_pieces!((
  SELECT s.id, s.ts, s.dur, s.track_id, s.depth, s.parent_id
  FROM slice AS s
  JOIN thread_track AS t ON t.id = s.track_id
  WHERE t.utid IN (SELECT utid FROM _mipmap_startup)
)) AS p
JOIN slice AS s ON s.id = p.slice_id
JOIN thread_track AS t ON t.id = p.track_id
ORDER BY p.ts;

-- Their states: (ts, dur, utid, state, io_wait, blocked_function).
CREATE PERFETTO TABLE _mipmap_thread_state AS
SELECT ts, iif(dur < 0, trace_end() - ts, dur) AS dur, utid, state, io_wait, blocked_function
FROM thread_state
WHERE dur != 0 AND utid IN (SELECT utid FROM _mipmap_startup)
ORDER BY ts;

CREATE VIRTUAL TABLE _mipmap_states_and_slices USING span_left_join(
  _mipmap_thread_state PARTITIONED utid, _mipmap_flat_slice PARTITIONED utid);

-- States with the slices that they were in: (ts, dur, utid, state, io_wait, blocked_function, name, depth).
CREATE PERFETTO TABLE _mipmap_flat_slice_thread_states_and_slices AS
SELECT ts, dur, utid, state, io_wait, blocked_function, name, depth FROM _mipmap_states_and_slices;

-- The same within each start: (ts, dur, startup_id, state, io_wait, blocked_function, name, depth).
CREATE PERFETTO TABLE _mipmap_startup_slice AS
SELECT ii.ts, ii.dur, ii.id_0 AS startup_id, s.state, s.io_wait, s.blocked_function, s.name, s.depth
FROM _interval_intersect!(
  (_mipmap_startup, (SELECT _auto_id AS id, ts, dur, utid FROM _mipmap_flat_slice_thread_states_and_slices)),
  (utid)
) AS ii
JOIN _mipmap_flat_slice_thread_states_and_slices AS s ON s._auto_id = ii.id_1
WHERE ii.dur > 0;

-- Each start in steps of 1 ms: (id, ts, dur, group_id).
CREATE PERFETTO TABLE _mipmap_startup_buckets_1ms AS
SELECT id, ts, dur, group_id
FROM _mipmap_buckets_table!((SELECT id AS group_id, ts, dur FROM _mipmap_startup WHERE dur > 0), group_id, 1000000);

-- What they did by number; equal group_hash: the same: (id, ts, dur, group_id, group_hash).
CREATE PERFETTO TABLE _mipmap_startup_slices_with_ids AS
SELECT
  _auto_id AS id,
  ts,
  dur,
  startup_id AS group_id,
  hash(
    coalesce(name, ''), coalesce(depth, -1), coalesce(state, ''), coalesce(io_wait, -1), coalesce(blocked_function, '')
  ) AS group_hash
FROM _mipmap_startup_slice;

-- What took most of each millisecond; milliseconds with the same are one row.
CREATE PERFETTO TABLE _android_startup_mipmap_1ms(
  -- When the stretch began.
  ts TIMESTAMP,
  -- Duration of the stretch in nanoseconds.
  dur DURATION,
  -- The start of the application.
  startup_id JOINID(android_startups.startup_id),
  -- Its process.
  upid LONG,
  -- Its package.
  package STRING,
  -- Kind of the start: cold, warm, hot.
  startup_type STRING,
  -- How long it took.
  startup_dur DURATION,
  -- Slice that the main thread was in; NULL: in none.
  name STRING,
  -- State of the thread.
  state STRING,
  -- Depth of the slice.
  depth LONG,
  -- Whether it waited for input or output.
  io_wait LONG,
  -- Function of the kernel in which it waited.
  blocked_function STRING
) AS
SELECT
  m.ts,
  m.dur,
  p.id AS startup_id,
  p.upid,
  p.package,
  p.startup_type,
  p.dur AS startup_dur,
  s.name,
  s.state,
  s.depth,
  s.io_wait,
  s.blocked_function
FROM _mipmap_merged!(_mipmap_startup_slices_with_ids, _mipmap_startup_buckets_1ms, group_id, 1000000) AS m
JOIN _mipmap_startup AS p ON p.id = m.group_id
JOIN _mipmap_startup_slice AS s ON s._auto_id = m.id
ORDER BY m.ts;
