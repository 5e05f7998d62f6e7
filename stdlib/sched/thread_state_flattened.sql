-- Thread states within a slice, under the deepest slice open at each moment.

INCLUDE PERFETTO MODULE slices.flat_slices;

-- The deepest slices of threads, cut by thread state.
CREATE VIRTUAL TABLE __span_joined_thread
USING SPAN_JOIN(_slice_flattened PARTITIONED utid, thread_state PARTITIONED utid);

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
SELECT ts, dur, utid, depth, name, slice_id, track_id, cpu, state, io_wait, blocked_function, waker_utid, irq_context
FROM __span_joined_thread
JOIN (
  SELECT s.track_id AS _track, s.ts AS _start, s.ts + s.dur AS _end
  FROM slice AS s
  JOIN thread_track AS t ON t.id = s.track_id
  WHERE ($slice_id IS NULL OR s.id = $slice_id) AND ($utid IS NULL OR t.utid = $utid)
  LIMIT 1
)
WHERE track_id = _track AND ts >= _start AND ts < _end;

-- The same added up by slice: how long each was deepest, and in which states the thread was meanwhile (NULL: in that one never).
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
  sum(iif(state = 'D' AND io_wait = 0, dur, NULL)) AS uninterruptible_sleep_nonio,
  sum(iif(state = 'D' AND io_wait = 1, dur, NULL)) AS uninterruptible_sleep_io,
  sum(iif(state = 'R', dur, NULL)) AS runnable,
  sum(iif(state = 'S', dur, NULL)) AS sleeping,
  sum(iif(state = 'T', dur, NULL)) AS stopped,
  sum(iif(state = 't', dur, NULL)) AS traced,
  sum(iif(state = 'X', dur, NULL)) AS exit_dead,
  sum(iif(state = 'Z', dur, NULL)) AS exit_zombie,
  sum(iif(state = 'x', dur, NULL)) AS task_dead,
  sum(iif(state = 'K', dur, NULL)) AS wake_kill,
  sum(iif(state = 'W', dur, NULL)) AS waking,
  sum(iif(state = 'P', dur, NULL)) AS parked,
  sum(iif(state = 'N', dur, NULL)) AS no_load,
  sum(iif(state = 'R+', dur, NULL)) AS runnable_preempted,
  sum(iif(state = 'Running', dur, NULL)) AS running,
  sum(iif(state = 'I', dur, NULL)) AS idle,
  sum(dur) AS dur,
  depth
FROM _get_flattened_thread_state($slice_id, $utid)
GROUP BY slice_id;
