-- What the main threads of starting applications did, in steps of 1 ms.

INCLUDE PERFETTO MODULE android.process_metadata;
INCLUDE PERFETTO MODULE android.startup.startups;
INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE intervals.mipmap;
INCLUDE PERFETTO MODULE sched.states;
INCLUDE PERFETTO MODULE slices.flat_slices;

-- The starts with their main threads: (id, ts, dur, utid, upid, package, startup_type).
CREATE PERFETTO TABLE _mipmap_startup AS
SELECT s.startup_id AS id, s.ts, s.dur, t.utid, p.upid, s.package, s.startup_type
FROM android_startups AS s
JOIN android_startup_processes AS p USING (startup_id)
JOIN thread AS t ON t.upid = p.upid AND t.is_main_thread
WHERE s.dur > 0 AND p.upid IN (SELECT upid FROM android_process_metadata)
GROUP BY s.startup_id
ORDER BY s.ts;

-- The innermost slices of their threads: (ts, dur, utid, name, depth).
CREATE PERFETTO TABLE _mipmap_flat_slice AS
SELECT ts, dur, utid, name, depth
FROM _slice_flattened
WHERE utid IN (SELECT utid FROM _mipmap_startup);

-- Their states: (ts, dur, utid, state, io_wait, blocked_function).
CREATE PERFETTO TABLE _mipmap_thread_state AS
SELECT ts, dur, utid, state, io_wait, blocked_function
FROM thread_state
WHERE utid IN (SELECT utid FROM _mipmap_startup)
ORDER BY ts;

CREATE VIRTUAL TABLE _mipmap_flat_slice_thread_states_and_slices_sp USING span_left_join(
  _mipmap_thread_state PARTITIONED utid, _mipmap_flat_slice PARTITIONED utid);

-- States, in words, with the slices that they were in: (id, ts, dur, utid, depth, name, state, io_wait, blocked_function). One that
-- did not end is left out behind the last slice.
CREATE PERFETTO TABLE _mipmap_flat_slice_thread_states_and_slices AS
SELECT
  row_number() OVER () AS id,
  ts,
  dur,
  utid,
  depth,
  name,
  sched_state_to_human_readable_string(state) AS state,
  io_wait,
  blocked_function
FROM _mipmap_flat_slice_thread_states_and_slices_sp
WHERE dur >= 0;

-- The same within each start: (ts, dur, startup_id, name, state, depth, io_wait, blocked_function).
CREATE PERFETTO TABLE _mipmap_startup_slice AS
SELECT ii.ts, ii.dur, ii.id_1 AS startup_id, s.name, s.state, s.depth, s.io_wait, s.blocked_function
FROM _interval_intersect!((_mipmap_flat_slice_thread_states_and_slices, _mipmap_startup), (utid)) AS ii
JOIN _mipmap_flat_slice_thread_states_and_slices AS s ON s.id = ii.id_0;

-- Each start in steps of 1 ms, from when its main thread is known: (id, startup_id, bucket_index, ts, dur).
CREATE PERFETTO TABLE _mipmap_startup_buckets_1ms AS
SELECT *
FROM _mipmap_buckets_table!((SELECT ts, dur, startup_id FROM _mipmap_startup_slice), startup_id, 1000000)
ORDER BY id;

-- What they did by number, in the order of time; equal group_hash: the same: (id, group_hash, and the columns of
-- _mipmap_startup_slice).
CREATE PERFETTO TABLE _mipmap_startup_slices_with_ids AS
SELECT
  row_number() OVER (ORDER BY ts) AS id,
  hash(
    coalesce(name, ''), coalesce(state, ''), coalesce(depth, ''), coalesce(io_wait, ''), coalesce(blocked_function, '')
  ) AS group_hash,
  *
FROM _mipmap_startup_slice
ORDER BY id;

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
  -- State of the thread, in words.
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
FROM _mipmap_merged!(_mipmap_startup_slices_with_ids, _mipmap_startup_buckets_1ms, startup_id, 1000000) AS m
JOIN _mipmap_startup_slices_with_ids AS s USING (id)
JOIN _mipmap_startup AS p ON p.id = s.startup_id
ORDER BY m.ts;
