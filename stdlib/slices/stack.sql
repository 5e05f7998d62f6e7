-- Slices by what stands above them: two slices with the same names all the way up have the same stack id.

CREATE PERFETTO TABLE _slice_stack AS
SELECT id, stack_id, parent_stack_id
FROM __intrinsic_slice_stacks();

-- Slices with their stack ids.
CREATE PERFETTO VIEW slice_with_stack_id(
  -- Row of slice.
  id ID(slice.id),
  -- When the slice began.
  ts TIMESTAMP,
  -- Duration of the slice in nanoseconds.
  dur DURATION,
  -- Row of track.
  track_id JOINID(track.id),
  -- Category of the event.
  category STRING,
  -- Name of the slice.
  name STRING,
  -- How many slices stand above it.
  depth LONG,
  -- The slice above it.
  parent_id JOINID(slice.id),
  -- Args of the slice; NULL when it has none.
  arg_set_id ARGSETID,
  -- Start on the thread's own clock.
  thread_ts TIMESTAMP,
  -- Length on the thread's own clock.
  thread_dur LONG,
  -- Instruction count at the start.
  thread_instruction_count LONG,
  -- Instructions in the slice.
  thread_instruction_delta LONG,
  -- Hash of the names from the top down to here.
  stack_id LONG,
  -- Hash of the names above; 0 at the top.
  parent_stack_id LONG
) AS
SELECT
  s.id,
  s.ts,
  s.dur,
  s.track_id,
  s.category,
  s.name,
  s.depth,
  s.parent_id,
  s.arg_set_id,
  s.thread_ts,
  s.thread_dur,
  s.thread_instruction_count,
  s.thread_instruction_delta,
  k.stack_id,
  k.parent_stack_id
FROM slice AS s
JOIN _slice_stack AS k USING (id);

-- The slices with the stack id and all above them.
CREATE PERFETTO FUNCTION ancestor_slice_by_stack(
  -- Stack id.
  stack_hash LONG
)
RETURNS TABLE(
  -- Row of slice.
  id JOINID(slice.id),
  -- When the slice began.
  ts TIMESTAMP,
  -- Duration of the slice in nanoseconds.
  dur DURATION,
  -- Row of track.
  track_id JOINID(track.id),
  -- Category of the event.
  category STRING,
  -- Name of the slice.
  name STRING,
  -- How many slices stand above it.
  depth LONG,
  -- The slice above it.
  parent_id JOINID(slice.id),
  -- Args of the slice; NULL when it has none.
  arg_set_id ARGSETID,
  -- Start on the thread's own clock.
  thread_ts TIMESTAMP,
  -- Length on the thread's own clock.
  thread_dur LONG
) AS
SELECT id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts, thread_dur
FROM slice
WHERE id IN (
  SELECT id FROM _slice_stack WHERE stack_id = $stack_hash
  UNION
  SELECT a.id FROM _slice_stack AS k JOIN ancestor_slice(k.id) AS a WHERE k.stack_id = $stack_hash
)
ORDER BY ts, id;

-- The slices with the stack id and all inside them.
CREATE PERFETTO FUNCTION descendant_slice_by_stack(
  -- Stack id.
  stack_hash LONG
)
RETURNS TABLE(
  -- Row of slice.
  id JOINID(slice.id),
  -- When the slice began.
  ts TIMESTAMP,
  -- Duration of the slice in nanoseconds.
  dur DURATION,
  -- Row of track.
  track_id JOINID(track.id),
  -- Category of the event.
  category STRING,
  -- Name of the slice.
  name STRING,
  -- How many slices stand above it.
  depth LONG,
  -- The slice above it.
  parent_id JOINID(slice.id),
  -- Args of the slice; NULL when it has none.
  arg_set_id ARGSETID,
  -- Start on the thread's own clock.
  thread_ts TIMESTAMP,
  -- Length on the thread's own clock.
  thread_dur LONG
) AS
SELECT id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts, thread_dur
FROM slice
WHERE id IN (
  SELECT id FROM _slice_stack WHERE stack_id = $stack_hash
  UNION
  SELECT d.id FROM _slice_stack AS k JOIN descendant_slice(k.id) AS d WHERE k.stack_id = $stack_hash
)
ORDER BY ts, id;
