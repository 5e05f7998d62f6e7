-- In which states a slice's thread was while the slice was open.

INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE slices.with_context;

-- Time of each thread state within each slice.
CREATE PERFETTO TABLE thread_slice_time_in_state(
  -- Row of slice.
  id JOINID(slice.id),
  -- Name of the slice.
  name STRING,
  -- Row of thread.
  utid JOINID(thread.id),
  -- Name of the thread.
  thread_name STRING,
  -- Row of process.
  upid JOINID(process.id),
  -- Name of the process.
  process_name STRING,
  -- State, as in thread_state.
  state STRING,
  -- Waiting for a device?
  io_wait BOOL,
  -- Kernel function that it was blocked in.
  blocked_function STRING,
  -- Time in the state.
  dur DURATION
) AS
SELECT
  s.id,
  s.name,
  s.utid,
  s.thread_name,
  s.upid,
  s.process_name,
  st.state,
  st.io_wait,
  st.blocked_function,
  sum(ii.dur) AS dur
FROM _interval_intersect!(
  (
    (SELECT id, ts, dur, utid FROM thread_slice WHERE utid > 0 AND dur > 0),
    (SELECT id, ts, dur, utid FROM thread_state WHERE dur > 0)
  ),
  (utid)
) AS ii
JOIN thread_slice AS s ON s.id = ii.id_0
JOIN thread_state AS st ON st.id = ii.id_1
GROUP BY s.id, st.state, st.io_wait, st.blocked_function
ORDER BY s.id;
