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
