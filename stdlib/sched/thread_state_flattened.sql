-- Thread states within a slice, under the deepest slice open at each moment.

INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE slices.flat_slices;

-- Pieces of a slice and all inside it, cut by thread state.
CREATE PERFETTO FUNCTION _get_flattened_thread_state(
  -- Row of slice.
  slice_id JOINID(slice.id),
  -- Row of thread.
  utid JOINID(thread.id)
)
RETURNS TABLE(
  ts TIMESTAMP,
  dur DURATION,
  utid JOINID(thread.id),
  depth LONG,
  name STRING,
  slice_id JOINID(slice.id),
  track_id JOINID(track.id),
  cpu LONG,
  state STRING,
  io_wait LONG,
  blocked_function STRING,
  waker_utid JOINID(thread.id),
  irq_context LONG
) AS
SELECT
  max(f.ts, t.ts) AS ts,
  min(f.ts + f.dur, t.ts + iif(t.dur = -1, trace_end() - t.ts, t.dur)) - max(f.ts, t.ts) AS dur,
  t.utid,
  f.depth,
  f.name,
  f.slice_id,
  f.track_id,
  t.cpu,
  t.state,
  t.io_wait,
  t.blocked_function,
  t.waker_utid,
  t.irq_context
FROM _slice_flattened AS f
JOIN thread_state AS t
  ON t.utid = $utid AND t.ts < f.ts + f.dur AND t.ts + iif(t.dur = -1, trace_end() - t.ts, t.dur) > f.ts
WHERE
  f.utid = $utid
  AND f.slice_id IN (SELECT $slice_id UNION ALL SELECT d.id FROM descendant_slice($slice_id) AS d)
ORDER BY 1;

-- The same added up by slice: how long each was deepest, and in which states the thread was meanwhile.
CREATE PERFETTO FUNCTION _get_flattened_thread_state_aggregated(
  -- Row of slice.
  slice_id JOINID(slice.id),
  -- Row of thread.
  utid JOINID(thread.id)
)
RETURNS TABLE(
  -- Row of slice.
  slice_id JOINID(slice.id),
  -- Name of the slice.
  slice_name STRING,
  -- Asleep, not to be woken by signals, not for I/O, in ns.
  uninterruptible_sleep_nonio LONG,
  -- Asleep, not to be woken by signals, for I/O, in ns.
  uninterruptible_sleep_io LONG,
  -- Waiting for a CPU, in ns.
  runnable LONG,
  -- Asleep, in ns.
  sleeping LONG,
  -- Stopped, in ns.
  stopped LONG,
  -- Stopped by a debugger, in ns.
  traced LONG,
  -- Ended, in ns.
  exit_dead LONG,
  -- Ended, not yet collected, in ns.
  exit_zombie LONG,
  -- Ended, its task going, in ns.
  task_dead LONG,
  -- Asleep, to be woken by deadly signals, in ns.
  wake_kill LONG,
  -- Being woken, in ns.
  waking LONG,
  -- Parked, in ns.
  parked LONG,
  -- Asleep, not counted as load, in ns.
  no_load LONG,
  -- Put aside for another, in ns.
  runnable_preempted LONG,
  -- On a CPU, in ns.
  running LONG,
  -- Idle, in ns.
  idle LONG,
  -- All of it, in ns.
  dur DURATION,
  -- Depth of the slice.
  depth LONG
) AS
SELECT
  slice_id,
  name AS slice_name,
  sum(iif(state = 'D' AND NOT coalesce(io_wait, 0), dur, 0)) AS uninterruptible_sleep_nonio,
  sum(iif(state = 'D' AND io_wait, dur, 0)) AS uninterruptible_sleep_io,
  sum(iif(state = 'R', dur, 0)) AS runnable,
  sum(iif(state = 'S', dur, 0)) AS sleeping,
  sum(iif(state = 'T', dur, 0)) AS stopped,
  sum(iif(state = 't', dur, 0)) AS traced,
  sum(iif(state = 'X', dur, 0)) AS exit_dead,
  sum(iif(state = 'Z', dur, 0)) AS exit_zombie,
  sum(iif(state = 'x', dur, 0)) AS task_dead,
  sum(iif(state = 'K', dur, 0)) AS wake_kill,
  sum(iif(state = 'W', dur, 0)) AS waking,
  sum(iif(state = 'P', dur, 0)) AS parked,
  sum(iif(state = 'N', dur, 0)) AS no_load,
  sum(iif(state = 'R+', dur, 0)) AS runnable_preempted,
  sum(iif(state = 'Running', dur, 0)) AS running,
  sum(iif(state = 'I', dur, 0)) AS idle,
  sum(dur) AS dur,
  depth
FROM _get_flattened_thread_state($slice_id, $utid)
GROUP BY slice_id;
